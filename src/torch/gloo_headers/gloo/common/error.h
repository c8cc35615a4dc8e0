#pragma once

// Our own declarations of what PyTorch's headers mention of Gloo, which its wheel lacks. PyTorch's
// header includes it and needs nothing from it.
