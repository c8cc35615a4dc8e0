#pragma once

// Minimal declarations of Gloo for PyTorch's headers; PyTorch's wheel lacks Gloo's headers.
// PyTorch's header includes this file, but uses nothing from it.
