package testmodel

import "math"

// Width is that of the layers of NewRankOne but its results, which leave a place free.
const Width = 64

// RankOne is a model of two dense layers of Width with squares between them, all of whose weights are the same: the worst case
// for noise, since all elements of its hidden layer have the same noise, which the second layer adds up.
type RankOne struct {
	Public, Private []byte
	// Magnitude is that of the inputs.
	Magnitude float64
}

const (
	// rankOneWeight is each weight in steps of 2^-Scale, rankOneBound the interval of the squares' arguments, which inputs of
	// magnitude 1 just reach.
	rankOneWeight = 1 << (Scale - 3)
	rankOneBound  = Width >> 3
)

// NewRankOne makes the model.
func NewRankOne() RankOne {
	tensors := map[string][]int64{"1.coefficients": {1 << 23, 0, 1 << 23}, "1.bound": {rankOneBound << (2 * Scale)}}
	for name, outputs := range map[string]int{"0.weight": Width, "2.weight": Width - 1} {
		for range Width * outputs {
			tensors[name] = append(tensors[name], rankOneWeight)
		}
	}
	p := RankOne{Private: safetensors(tensors), Magnitude: 1}
	program := chain{model: "rank one", magnitude: p.Magnitude, batch: Batch}
	program.value(Width, Scale)
	program.dense("dense0", 0, Width, Width, 2*Scale, "null")
	program.polynomial("act", 1, 2, Width, Scale)
	program.dense("dense2", 2, Width, Width-1, 2*Scale, "null")
	p.Public = program.public(p.Private)
	return p
}

// Run computes the model on one sample in the clear: each output is the same.
func (p RankOne) Run(x []float64) []float64 {
	weight := math.Ldexp(rankOneWeight, -Scale)
	hidden := 0.0
	for _, value := range x {
		hidden += weight * value
	}
	hidden /= rankOneBound
	hidden *= hidden // 1/2 T_0 + 1/2 T_2
	y := make([]float64, Width-1)
	for i := range y {
		y[i] = Width * weight * hidden
	}
	return y
}
