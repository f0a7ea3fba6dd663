package testmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Deep is a model of so many dense layers of one width, each but the last with a polynomial after it.
type Deep struct {
	Public, Private []byte
	Layers          [][][]float64
	Coefficients    []float64
}

// NewDeep makes a deep program with weights from a seed. Its polynomials keep values within [-1, 1].
func NewDeep(layers, degree int, seed uint64) Deep {
	rng := rand.New(rand.NewPCG(seed, 1))
	tensors := map[string][]int64{}
	p := Deep{Coefficients: make([]float64, degree+1)}
	coefficients := make([]int64, degree+1)
	for k := range coefficients {
		coefficients[k] = int64(math.Round(math.Ldexp((rng.Float64()-0.5)/float64(k+1), 24)))
		p.Coefficients[k] = math.Ldexp(float64(coefficients[k]), -24)
	}
	var values, operations []string
	scale := Scale
	value := func() {
		values = append(values, fmt.Sprintf(`{"shape":[%d,%d],"scale":%d}`, Batch, Hidden, scale))
	}
	value()
	for layer := range layers {
		name := fmt.Sprintf("%d.weight", layer)
		p.Layers = append(p.Layers, matrix(rng, tensors, name, Hidden, Hidden))
		scale = 2 * Scale
		value()
		operations = append(operations, fmt.Sprintf(`{"op":"dense","name":"dense%d","inputs":[%d],"output":%d,"weight":"%s","weight_shape":[%d,%d],"bias":null}`,
			layer, len(values)-2, len(values)-1, name, Hidden, Hidden))
		if layer == layers-1 {
			break
		}
		tensors[fmt.Sprintf("%d.coefficients", layer)] = coefficients
		tensors[fmt.Sprintf("%d.bound", layer)] = []int64{deepBound << (2 * Scale)}
		scale = Scale
		value()
		operations = append(operations, fmt.Sprintf(`{"op":"polynomial","name":"act%d","inputs":[%d],"output":%d,"coefficients":"%d.coefficients","bound":"%d.bound","degree":%d}`,
			layer, len(values)-2, len(values)-1, layer, layer, degree))
	}
	p.Private = safetensors(tensors)
	digest := sha256.Sum256(p.Private)
	p.Public = fmt.Appendf(nil, `{"format":"privet-program","version":1,"model":"deep","ring_bits":50,"scale_bits":%d,
		"weight_bits":16,"weights_commitment":"%s","inputs":[{"name":"x","value":0,"magnitude":1.0}],
		"outputs":[{"name":"y","value":%d,"client":null}],"values":[%s],"operations":[%s],"batch":%d}`,
		Scale, hex.EncodeToString(digest[:]), len(values)-1, strings.Join(values, ","), strings.Join(operations, ","), Batch)
	return p
}

// deepBound is the bound of all activations' arguments.
const deepBound = 4

// Run computes the model on one sample in the clear.
func (p Deep) Run(x []float64) []float64 {
	x = p.Between(x, 0, 2*(len(p.Layers)-1))
	return p.dense(x, len(p.Layers)-1)
}

// Between computes a value at a stage of the model from one at an earlier stage. Each layer has two: the argument of its
// activation, as a part of its bound, and the activation.
func (p Deep) Between(x []float64, from, to int) []float64 {
	activation := Program{Coefficients: p.Coefficients, Bound: 1}.activation
	for stage := from; stage < to; stage++ {
		made := make([]float64, Hidden)
		for j := range made {
			if stage%2 == 0 {
				made[j] = p.dense(x, stage/2)[j] / deepBound
			} else {
				made[j] = activation(x[j])
			}
		}
		x = made
	}
	return x
}

// dense is a layer's product.
func (p Deep) dense(x []float64, layer int) []float64 {
	y := make([]float64, Hidden)
	for i, row := range p.Layers[layer] {
		for j, weight := range row {
			y[j] += x[i] * weight
		}
	}
	return y
}
