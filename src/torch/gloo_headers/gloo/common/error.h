#pragma once

// See ../../README.md. PyTorch's header includes it and needs nothing from it.
