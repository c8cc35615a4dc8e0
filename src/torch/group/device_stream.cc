#include "src/torch/group/device_stream.h"

#ifdef ETUDE_NCCL
#include <dlfcn.h>
#endif

#include <memory>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#ifdef ETUDE_NCCL
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace etude {

void DoInStream(const c10::Device& device, std::function<void()> work) {
  if (device.is_cpu()) {
    work();
    return;
  }
#ifdef ETUDE_NCCL
  if (device.is_cuda()) {
    auto owned = std::make_unique<std::function<void()>>(std::move(work));
    const auto call = [](void* data) {
      const std::unique_ptr<std::function<void()>> given(static_cast<std::function<void()>*>(data));
      (*given)();
    };
    // PyTorch ships CUDA's runtime in a folder that this program is not linked with.
    static const auto launch =
        reinterpret_cast<decltype(&cudaLaunchHostFunc)>(dlsym(RTLD_DEFAULT, "cudaLaunchHostFunc"));
    TORCH_CHECK(launch != nullptr, "CUDA's runtime has no cudaLaunchHostFunc");
    C10_CUDA_CHECK(launch(c10::cuda::getCurrentCUDAStream(device.index()), call, owned.get()));
    (void)owned.release();  // now owned by the call
    return;
  }
#endif
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
  work();
}

}  // namespace etude
