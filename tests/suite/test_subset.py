"""The mathematics of `etude suite subset` compared with scikit-learn's, on the same z-scores."""

import json
import os
import subprocess

import made_characterization
import pytest

numpy = pytest.importorskip("numpy")
cluster = pytest.importorskip("sklearn.cluster")
decomposition = pytest.importorskip("sklearn.decomposition")
manifold = pytest.importorskip("sklearn.manifold")
metrics = pytest.importorskip("sklearn.metrics")
preprocessing = pytest.importorskip("sklearn.preprocessing")

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")
CASES = [("ranking", 1, 0.0), ("ranking", 2, 0.5), ("characterization", 3, 0.3), ("characterization", 4, 0.9)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def subset(request, tmp_path):
    purpose, seed, noise = request.param
    document = made_characterization.characterization(seed, counters=seed % 2 == 0, noise=noise)
    made_characterization.write(tmp_path, document)
    done = subprocess.run([ETUDE, "suite", "subset", tmp_path, "--for", purpose, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows(subset, member, only=lambda task: True):
    return numpy.array([task[member] for task in subset["tasks"] if task["z_scores"] is not None and only(task)])


def is_candidate(task):
    return task["candidate"]


def test_z_scores(subset):
    factors = numpy.array([list(task["factors"].values()) for task in subset["tasks"] if task["z_scores"] is not None])
    assert numpy.allclose(preprocessing.StandardScaler().fit_transform(factors), rows(subset, "z_scores"), atol=1e-9)


def test_principal_components(subset):
    scores = rows(subset, "z_scores")
    theirs = decomposition.PCA().fit(scores)
    count = len(theirs.explained_variance_)
    ours = numpy.array(subset["pca"]["variances"])
    assert numpy.allclose(ours[:count], theirs.explained_variance_, atol=1e-9)
    kept = subset["pca"]["kept"]
    shares = numpy.cumsum(theirs.explained_variance_ratio_)
    assert kept == max(2, int(numpy.argmax(shares >= 0.9)) + 1)
    coordinates = rows(subset, "pca")
    expected = theirs.transform(scores)[:, :kept]
    signs = numpy.sign((coordinates * expected).sum(axis=0))
    assert numpy.allclose(coordinates, expected * signs, atol=1e-7)


@pytest.mark.parametrize("space", ["pca", "t_sne"])
def test_clusters(subset, space):
    points = rows(subset, space, is_candidate)
    found = subset[space]
    labels = [found["labels"][task["id"]] for task in subset["tasks"] if task["candidate"]]
    theirs = cluster.KMeans(found["clusters"], n_init=200, random_state=0).fit(points)
    assert found["inertia"] == pytest.approx(theirs.inertia_, rel=1e-6)
    assert metrics.adjusted_rand_score(labels, theirs.labels_) == pytest.approx(1)
    means = {row["clusters"]: row["mean"] for row in found["silhouettes"]}
    assert means[found["clusters"]] == pytest.approx(metrics.silhouette_score(points, theirs.labels_), abs=1e-9)
    assert means[found["clusters"]] == max(mean for count, mean in means.items() if count >= 3)


def test_t_sne_diverges_no_more(subset):
    scores = rows(subset, "z_scores")
    perplexity = subset["t_sne"]["perplexity"]
    theirs = min(
        manifold.TSNE(perplexity=perplexity, method="exact", init="random", random_state=seed).fit(scores).kl_divergence_ for seed in range(10)
    )
    assert subset["t_sne"]["divergence"] <= 1.05 * theirs


def test_each_cluster_has_one_member_of_the_subset(subset):
    space = "t_sne" if subset["space"] == "t-sne" else "pca"
    labels = subset[space]["labels"]
    assert sorted(labels[task] for task in subset["picked"]) == list(range(subset[space]["clusters"]))
    assert all(task["why"] for task in subset["tasks"])
