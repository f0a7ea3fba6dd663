package bootstrap

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/bootstrapping"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"

	"privet/ckks/internal/wire"
)

// Refresher evaluates the circuit with one client's keys.
type Refresher struct {
	params    *Parameters
	evaluator *bootstrapping.Evaluator
}

// Receive reads the keys that `next` gives, each of the size asked for, and prepares the circuit.
func Receive(p *Parameters, next func(size int) ([]byte, error)) (*Refresher, error) {
	keys := &bootstrapping.EvaluationKeys{}
	var relinearisation *rlwe.RelinearizationKey
	var rotations []*rlwe.GaloisKey
	for _, key := range p.keys {
		data, err := next(p.Size(key))
		if err != nil {
			return nil, err
		}
		made, err := wire.ReadKey(data, p.ring(key), key.Level)
		if err != nil {
			return nil, fmt.Errorf("a key of the bootstrapping circuit: %w", err)
		}
		switch key.Kind {
		case ToComplex:
			keys.EvkRealToCmplx = made
		case ToReal:
			keys.EvkCmplxToReal = made
		case ToSparse:
			keys.EvkDenseToSparse = made
		case FromSparse:
			keys.EvkSparseToDense = made
		case Relinearisation:
			relinearisation = &rlwe.RelinearizationKey{EvaluationKey: *made}
		case Galois:
			own := p.circuit.BootstrappingParameters
			rotations = append(rotations, &rlwe.GaloisKey{
				GaloisElement: key.Element, NthRoot: own.RingQ().NthRoot(), EvaluationKey: *made,
			})
		}
	}
	keys.MemEvaluationKeySet = rlwe.NewMemEvaluationKeySet(relinearisation, rotations...)
	evaluator, err := bootstrapping.NewEvaluator(p.circuit, keys)
	if err != nil {
		return nil, err
	}
	return &Refresher{p, evaluator}, nil
}

// Refresh gives the same values of any node at a level, and keeps their scale.
func (r *Refresher) Refresh(_ int, values []*rlwe.Ciphertext, level int) ([]*rlwe.Ciphertext, error) {
	residual := r.params.circuit.ResidualParameters
	batch := make([]rlwe.Ciphertext, len(values))
	for i, ct := range values {
		batch[i] = *ct.CopyNew()
		// The circuit gives the default scale; what counts as having it comes back unchanged.
		batch[i].Scale = residual.DefaultScale()
		batch[i].LogDimensions = ring.Dimensions{Cols: r.params.circuit.LogMaxSlots()}
	}
	batch, err := r.evaluator.BootstrapMany(batch)
	if err != nil {
		return nil, err
	}
	made := make([]*rlwe.Ciphertext, len(values))
	for i := range batch {
		made[i] = &batch[i]
		made[i].LogDimensions = residual.LogMaxDimensions()
		made[i].Resize(1, level)
	}
	return made, nil
}
