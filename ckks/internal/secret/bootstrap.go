package secret

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/bootstrap"
	"privet/ckks/internal/wire"
)

// Bootstrapping makes the keys of a bootstrapping circuit and gives each as it is sent, so that no more than one lies in
// memory. The circuit's own secret, and the sparse one, are made for this and forgotten.
func (k *Key) Bootstrapping(p *bootstrap.Parameters, send func([]byte) error) error {
	own, sparse, real := p.Rings()
	generator := rlwe.NewKeyGenerator(own)
	dense := generator.GenSecretKeyNew()
	sparseGenerator := rlwe.NewKeyGenerator(sparse)
	thin := sparseGenerator.GenSecretKeyWithHammingWeightNew(p.SparseWeight())
	for _, key := range p.Keys() {
		options := compressed(key.Level)
		var made *rlwe.EvaluationKey
		ring := own
		switch key.Kind {
		case bootstrap.ToComplex:
			_, made = generator.GenEvaluationKeysForRingSwapNew(dense, k.secret, options)
		case bootstrap.ToReal:
			ring = real
			specials := real.MaxLevelP()
			options.LevelP = &specials
			made, _ = generator.GenEvaluationKeysForRingSwapNew(dense, k.secret, options)
		case bootstrap.ToSparse:
			ring = sparse
			made = sparseGenerator.GenEvaluationKeyNew(dense, thin, options)
		case bootstrap.FromSparse:
			made = generator.GenEvaluationKeyNew(thin, dense, options)
		case bootstrap.Relinearisation:
			made = &generator.GenRelinearizationKeyNew(dense, options).EvaluationKey
		case bootstrap.Galois:
			made = &generator.GenGaloisKeyNew(key.Element, dense, options).EvaluationKey
		}
		if err := send(wire.AppendKey(nil, ring, made)); err != nil {
			return err
		}
	}
	return nil
}
