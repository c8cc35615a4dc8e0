"""Where what is built for one torch lies in the cache."""

import re

from etude.recording import torch_cache


def test_whatever_the_recorder_includes_counts():
    """Else a changed header would leave the recorder that was built before in the cache."""
    tree = torch_cache.source()
    counted = {path.relative_to(tree).as_posix() for path in torch_cache._files(tree, torch_cache.RECORDER)}
    found, todo = set(), [path for path in counted if path.startswith("src/torch/recorder/")]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += re.findall(r'#include "(src/[^"]+)"', (tree / name).read_text())
    assert found <= counted
    assert "src/base/hash.h" in found
