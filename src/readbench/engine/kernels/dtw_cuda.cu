// Dynamic time warping on a GPU: the recursion of dtw.py over the same tiles, 32 windows in a tile.
//
// A warp compares QUERIES queries with the 32 windows of a tile; each thread has one window of its own and keeps its row
// of the recursion in registers. Cell k of row i stands for column j = i + k - RADIUS, so the row of the step before
// needs no moving:
//
//     D(i, j) = cost(i, j) + min(D(i-1, j-1), D(i-1, j), D(i, j-1))     becomes
//     d[k]    = cost       + min(d[k],        d[k+1],    d[k-1])        in place, k ascending.
//
// Costs are not negative, so their bits order as integers do, and the least of three is one instruction of Hopper chips.
// Columns outside a window hold FAR, which no path can afford. Set when compiled:
//
//     RADIUS    of the band, at least that of every pair; a pair's own where CHECKED is 0
//     CHECKED   whether each window has a radius of its own
//     WIDE      the row is not kept in registers but in local memory, and the windows stay where they are
//     QUERIES   of a warp;  WARPS of a block;  ROWS of the recursion between two loads of the windows;  DEEP rows at once
//     JOINT     all channels on one path (DTW-D, tiles with interleaved channels) or each on its own (DTW-I)

#define LANES 32
#define WIDTH (2 * RADIUS + 1)
#define FAR 1e18f
#define NEVER __int_as_float(0x7f800000)
#define LARGEST 3.402823466e38f
#if WIDE
#define CELLS _Pragma("unroll 1")
#else
#define CELLS _Pragma("unroll")
#endif

__device__ __forceinline__ float least(float a, float b, float c) {
    return __int_as_float(min(min(__float_as_int(a), __float_as_int(b)), __float_as_int(c)));
}

#if WIDE
// A cell of the row of one query, given what the least of its neighbours, `best`, becomes.
#define CELL(cost_into)                                                            \
    float best = least(row[q][k], k + 1 < WIDTH ? row[q][k + 1] : NEVER, left[q]); \
    float cell = cost_into;                                                        \
    if (CHECKED && abs(k - RADIUS) > radius) cell = NEVER;                         \
    row[q][k] = left[q] = cell;
#else
// P rows of the recursion: row p follows one column behind row p - 1, so that all of them use a value that is read once.
template <int P>
__device__ __forceinline__ void advance(
    float (&row)[QUERIES][WIDTH], const float *window, const float *const (&point)[QUERIES], int first, int radius) {
    float here[P][QUERIES], latest[P][QUERIES], before[P][QUERIES];
#pragma unroll
    for (int p = 0; p < P; p++) {
#pragma unroll
        for (int q = 0; q < QUERIES; q++) here[p][q] = point[q] ? __ldg(point[q] + first + p) : 0.0f;
    }
#pragma unroll
    for (int s = 0; s < WIDTH + P - 1; s++) {
        const float value = window[s * LANES];
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int k = s - p, upper = p == 0 ? 0 : p - 1;
            if (k < 0 || k >= WIDTH) continue;
            const bool end = k + 1 == WIDTH;
#pragma unroll
            for (int q = 0; q < QUERIES; q++) {
                const float above = p == 0 ? row[q][k] : end ? latest[upper][q] : before[upper][q];
                const float right = end ? NEVER : p == 0 ? row[q][k + 1] : latest[upper][q];
                const float best = least(above, right, k == 0 ? NEVER : latest[p][q]);
                float cell = fmaf(here[p][q] - value, here[p][q] - value, best);
                if (CHECKED && abs(k - RADIUS) > radius) cell = NEVER;
                before[p][q] = latest[p][q];
                latest[p][q] = cell;
                if (p == P - 1) row[q][k] = cell;
            }
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(WARPS * LANES) warp_tiles(
    const float *values, const long long *start, const long long *depths, const long long *stored,
    const long long *slots, const long long *lengths, const long long *radii, const int *tiles, int axis,
    const float *points, const long long *point_start, const long long *point_slots, const int *queries, int count,
    int length, int point_axis, float *out, int columns) {
#if !WIDE
    __shared__ float window[(ROWS + 2 * RADIUS) * LANES];
#endif
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int tile = tiles[blockIdx.x];
    const int depth = depths[tile], own = lengths[tile * LANES + lane];
    const int radius = CHECKED ? (int)radii[tile * LANES + lane] : RADIUS;
    const int last = own - length + RADIUS;

    int query[QUERIES];
    float total[QUERIES], row[QUERIES][WIDTH];
    for (int q = 0; q < QUERIES; q++) {
        query[q] = queries[min((int)(blockIdx.y * WARPS + warp) * QUERIES + q, count - 1)];
        total[q] = 0;
    }
    const int rounds = JOINT ? 1 : point_axis;
    for (int c = 0; c < rounds; c++) {
        const long long theirs = c < axis ? slots[(long long)tile * axis + c] : -1;
        const float *series = theirs < 0 ? values : values + start[tile] + theirs * depth * LANES;
        const int step = theirs < 0 ? 0 : LANES;
        const float *point[QUERIES];
        bool present = theirs >= 0;
        for (int q = 0; q < QUERIES; q++) {
            const long long ours = point_slots[(long long)query[q] * point_axis + c];
            point[q] = ours < 0 ? nullptr : points + point_start[query[q]] + ours * length;
            present |= ours >= 0;
        }
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            CELLS for (int k = 0; k < WIDTH; k++) row[q][k] = k == RADIUS ? 0.0f : NEVER;
        }
        for (int first = 0; first < length; first += ROWS) {
            const int rows = min(ROWS, length - first);
#if !WIDE
            __syncthreads();
            for (int s = warp; s < rows + 2 * RADIUS; s += WARPS) {
                const int j = first + s - RADIUS;
                window[s * LANES + lane] = j >= 0 && j < own ? series[(long long)j * step + lane] : FAR;
            }
            __syncthreads();
#endif
            if (!JOINT && !present) continue;
#if !WIDE
            int r = 0;
            for (; r + DEEP <= rows; r += DEEP) advance<DEEP>(row, window + r * LANES + lane, point, first + r, radius);
            for (; r < rows; r++) advance<1>(row, window + r * LANES + lane, point, first + r, radius);
#else
            for (int r = 0; r < rows; r++) {
                float left[QUERIES];
                for (int q = 0; q < QUERIES; q++) left[q] = NEVER;
                for (int k = 0; k < WIDTH; k++) {
                    const int j = first + r + k - RADIUS;
                    const bool inside = j >= 0 && j < own;
#if JOINT
                    float cost[QUERIES];
                    for (int q = 0; q < QUERIES; q++) cost[q] = inside ? 0.0f : NEVER;
                    for (int d = 0; inside && d < point_axis; d++) {
                        const long long slot = d < axis ? slots[(long long)tile * axis + d] : -1;
                        const float value = slot < 0 ? 0.0f : values[start[tile] + (j * stored[tile] + slot) * LANES + lane];
                        for (int q = 0; q < QUERIES; q++) {
                            const long long ours = point_slots[(long long)query[q] * point_axis + d];
                            const float there = ours < 0 ? 0.0f : points[point_start[query[q]] + ours * length + first + r];
                            cost[q] = fmaf(there - value, there - value, cost[q]);
                        }
                    }
                    for (int q = 0; q < QUERIES; q++) { CELL(best + cost[q]) }
#else
                    const float value = inside ? series[(long long)j * step + lane] : FAR;
                    for (int q = 0; q < QUERIES; q++) {
                        const float here = point[q] ? __ldg(point[q] + first + r) : 0.0f;
                        CELL(fmaf(here - value, here - value, best))
                    }
#endif
                }
            }
#endif
        }
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            float found = NEVER;
            CELLS for (int k = 0; k < WIDTH; k++) found = k == last ? row[q][k] : found;
            if (present || JOINT) total[q] += found;
        }
    }
    for (int q = 0; q < QUERIES; q++) {
        const int place = (int)(blockIdx.y * WARPS + warp) * QUERIES + q;
        if (place < count) out[(long long)query[q] * columns + (long long)tile * LANES + lane] = fminf(total[q], LARGEST);
    }
}
