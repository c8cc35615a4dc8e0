#pragma once

// Constants of the cost model of NCCL 2.30.7 (src/graph/tuning.cc). Rows "by architecture" are
// Volta, Ampere, Hopper and Blackwell; columns "by nodes" are 1, 2, and 3 or more. Rows "by
// algorithm" and columns "by protocol" are in the order of NcclAlgorithm and NcclProtocol.
// Latencies are in µs, speeds in GB/s.

#include <array>
#include <cstddef>
#include <cstdint>

namespace etude {

enum class NcclHardware : uint8_t { kNvlink, kPci, kNetwork };

template <typename T, size_t rows, size_t columns>
using NcclTable = std::array<std::array<T, columns>, rows>;

constexpr int64_t kNcclMaxChannels = 64;
constexpr int64_t kNcclMaxDirectGpus = 8;  // of a node, for CollNet
constexpr int64_t kNcclMaxNvlsGpus = 32;   // of a node, except for all-reduces
constexpr size_t kNcclTreeSizes = 24;

// By algorithm and protocol.
constexpr NcclTable<double, 7, 3> kNcclBaseLatency = {{
    {6.8, 14.0, 8.4},
    {6.6, 14.0, 8.4},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {8.0, 8.0, 8.0},
}};

// By NcclHardware, algorithm and protocol.
constexpr std::array<NcclTable<double, 7, 3>, 3> kNcclLinkLatency = {{
    {{
        {0.6, 1.25, 4.0},
        {0.6, 1.9, 3.4},
        {0, 0, 3.7},
        {0, 0, 2.8},
        {0, 0, 25},
        {0, 0, 25},
        {0, 0, 4.0},
    }},
    {{
        {1.0, 1.9, 4.0},
        {1.0, 2.5, 5.7},
        {0, 0, 3.7},
        {0, 0, 2.8},
        {0, 0, 0},
        {0, 0, 0},
        {0, 0, 4.0},
    }},
    {{
        {5.0, 8.5, 14},
        {2.7, 4.0, 14.0},
        {0, 0, 31},
        {0, 0, 30},
        {0, 0, 18},
        {0, 0, 20.9},
        {0, 0, 14},
    }},
}};

// Caps of LL: on one node by architecture, on 2 and on 3 or more nodes by the processor's vendor.
constexpr std::array<double, 4> kNcclLlCapOfNode = {39.0, 87.7, 141.0, 282.0};
constexpr std::array<double, 2> kNcclLlCapOther = {39.0, 20.4};
constexpr std::array<double, 2> kNcclLlCapAmd = {22.5, 19.0};

// Caps of a channel, by architecture and nodes.
constexpr NcclTable<double, 4, 3> kNcclRingLl128ChannelCap = {{
    {20.0, 20.0, 20.0},
    {20.0, 20.0, 20.0},
    {36.7, 36.7, 36.7},
    {40.0, 40.0, 40.0},
}};
constexpr NcclTable<double, 4, 3> kNcclTreeLl128ChannelCap = {{
    {20.0, 20.0, 20.0},
    {20.0, 20.0, 20.0},
    {36.7, 36.7, 29.0},
    {55.6, 31.67, 20.0},
}};
constexpr NcclTable<double, 4, 3> kNcclTreeChannelCap = {{
    {26.5, 18.5, 10.0},
    {24.0, 23.6, 17.8},
    {38.7, 41.4, 36.0},
    {70.0, 42.8, 24.0},
}};
constexpr NcclTable<double, 4, 3> kNcclNvlsTreeChannelCap = {{
    {26.5, 18.5, 10.0},
    {24.0, 23.6, 17.8},
    {0.0, 57.7, 45.5},
    {0.0, 96.0, 80.0},
}};

// By architecture.
constexpr std::array<float, 4> kNcclNvlsEfficiency = {0, 0, .85F, .74F};

// Share of a tree's bandwidth by protocol and size: column k for 64 · 2ᵏ bytes and more.
constexpr NcclTable<float, 3, kNcclTreeSizes> kNcclTreeShare = {{
    {1,   1,   1,   1,   .9F, .8F, .7F, .7F, .7F, .7F, .6F, .5F,
     .4F, .4F, .5F, .6F, .7F, .8F, .9F, 1,   1,   1,   1,   1},
    {1,   1,   1,   1,   1,   .9F, .8F, .8F, .8F, .7F, .6F, .6F,
     .6F, .6F, .6F, .6F, .8F, .9F, .9F, .9F, .9F, 1,   1,   1},
    {.9F, .9F, .9F, .9F, .9F, .9F, .9F, .8F, .7F, .6F, .6F, .5F,
     .5F, .5F, .5F, .6F, .7F, .8F, .7F, .7F, .8F, .9F, .9F, .9F},
}};

}  // namespace etude
