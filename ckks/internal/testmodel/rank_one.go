package testmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
)

// Width is that of the layers of NewRankOne.
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
	for _, name := range []string{"0.weight", "2.weight"} {
		for range Width * Width {
			tensors[name] = append(tensors[name], rankOneWeight)
		}
	}
	p := RankOne{Private: safetensors(tensors), Magnitude: 1}
	digest := sha256.Sum256(p.Private)
	value := func(scale int) string { return fmt.Sprintf(`{"shape":[%d,%d],"scale":%d}`, Batch, Width, scale) }
	dense := func(layer, from int) string {
		return fmt.Sprintf(`{"op":"dense","name":"dense%d","inputs":[%d],"output":%d,"weight":"%d.weight","weight_shape":[%d,%d],"bias":null}`,
			layer, from, from+1, layer, Width, Width)
	}
	p.Public = fmt.Appendf(nil, `{"format":"privet-program","version":1,"model":"rank one","ring_bits":50,"scale_bits":%d,
		"weight_bits":16,"weights_commitment":"%s","inputs":[{"name":"x","value":0,"magnitude":%g}],
		"outputs":[{"name":"y","value":3,"client":null}],"values":[%s,%s,%s,%s],"operations":[%s,
		{"op":"polynomial","name":"act","inputs":[1],"output":2,"coefficients":"1.coefficients","bound":"1.bound","degree":2},%s],"batch":%d}`,
		Scale, hex.EncodeToString(digest[:]), p.Magnitude,
		value(Scale), value(2*Scale), value(Scale), value(2*Scale), dense(0, 0), dense(2, 2), Batch)
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
	y := make([]float64, Width)
	for i := range y {
		y[i] = Width * weight * hidden
	}
	return y
}
