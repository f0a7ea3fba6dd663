package testmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
)

// Gate is a model that multiplies a dense layer's value with a composition of two polynomials of it, as an approximate
// ReLU does, and ends with another dense layer.
type Gate struct {
	Public, Private []byte
	first, second   [][]float64
	inner, outer    []float64
}

// Bounds of the two polynomials.
const (
	innerBound = 4
	outerBound = 2
)

// NewGate makes a gate with weights from a seed; its polynomials have degree 3.
func NewGate(seed uint64) Gate {
	rng := rand.New(rand.NewPCG(seed, 1))
	tensors := map[string][]int64{}
	p := Gate{
		first:  matrix(rng, tensors, "0.weight", Inputs, Hidden),
		inner:  vector(rng, tensors, "1.coefficients", 4, 24),
		outer:  vector(rng, tensors, "2.coefficients", 4, 24),
		second: matrix(rng, tensors, "4.weight", Hidden, Outputs),
	}
	tensors["1.bound"] = []int64{innerBound << (2 * Scale)}
	tensors["2.bound"] = []int64{outerBound << Scale}
	p.Private = safetensors(tensors)
	digest := sha256.Sum256(p.Private)
	values := fmt.Sprintf(`{"shape":[%d,%d],"scale":%d}`, Batch, Inputs, Scale)
	for _, scale := range []int{2 * Scale, Scale, Scale, 3 * Scale} {
		values += fmt.Sprintf(`,{"shape":[%d,%d],"scale":%d}`, Batch, Hidden, scale)
	}
	values += fmt.Sprintf(`,{"shape":[%d,%d],"scale":%d}`, Batch, Outputs, 4*Scale)
	p.Public = fmt.Appendf(nil, `{"format":"privet-program","version":1,"model":"gate","ring_bits":50,"scale_bits":%d,
		"weight_bits":16,"weights_commitment":"%s","inputs":[{"name":"x","value":0,"magnitude":4.0}],
		"outputs":[{"name":"y","value":5,"client":null}],"values":[%s],"operations":[
		{"op":"dense","name":"first","inputs":[0],"output":1,"weight":"0.weight","weight_shape":[%d,%d],"bias":null},
		{"op":"polynomial","name":"inner","inputs":[1],"output":2,"coefficients":"1.coefficients","bound":"1.bound","degree":3},
		{"op":"polynomial","name":"outer","inputs":[2],"output":3,"coefficients":"2.coefficients","bound":"2.bound","degree":3},
		{"op":"mul","name":"gate","inputs":[1,3],"output":4},
		{"op":"dense","name":"second","inputs":[4],"output":5,"weight":"4.weight","weight_shape":[%d,%d],"bias":null}],
		"batch":%d}`,
		Scale, hex.EncodeToString(digest[:]), values, Inputs, Hidden, Hidden, Outputs, Batch)
	return p
}

// Run computes the model on one sample in the clear.
func (p Gate) Run(x []float64) []float64 {
	y := make([]float64, Outputs)
	for j := range Hidden {
		value := 0.0
		for i, row := range p.first {
			value += x[i] * row[j]
		}
		inner := Program{Coefficients: p.inner, Bound: innerBound}.activation(value)
		value *= Program{Coefficients: p.outer, Bound: outerBound}.activation(inner)
		for k := range y {
			y[k] += value * p.second[j][k]
		}
	}
	return y
}
