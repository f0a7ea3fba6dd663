package session

import (
	"maps"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/bootstrap"
	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/wire"
)

// sendKeys makes and sends the evaluation keys of a plan one by one, so that no more than one lies in memory.
func sendKeys(c *channel.Channel, key *secret.Key, p *plan.Plan) error {
	if err := c.Deliver(key.Zero(p.ZeroLevel())); err != nil {
		return err
	}
	if p.RelinearisationLevel >= 0 {
		if err := c.Send(key.Relinearisation(p.RelinearisationLevel)); err != nil {
			return err
		}
	}
	for _, rotation := range slices.Sorted(maps.Keys(p.Rotations)) {
		if err := c.Send(key.Rotation(rotation, p.Rotations[rotation])); err != nil {
			return err
		}
	}
	if p.Circuit != nil {
		return key.Bootstrapping(p.Circuit, c.Send)
	}
	return nil
}

// received are keys to compute with, and an encryption of zero under the same secret.
type received struct {
	zero      *rlwe.Ciphertext
	evaluator *ckks.Evaluator
	refresher evaluate.Refresher
}

// receiveKeys takes exactly the keys that the plan needs, each checked for its size and its coefficients.
func receiveKeys(c *channel.Channel, p *plan.Plan, params ckks.Parameters) (*received, error) {
	zero, err := receiveSeeded(c, "an encryption of zero", params, p.ZeroLevel())
	if err != nil {
		return nil, err
	}
	next := func(level int) (*rlwe.EvaluationKey, error) {
		read := func(data []byte) (*rlwe.EvaluationKey, error) { return wire.ReadKey(data, params, level) }
		return receive(c, "an evaluation key", wire.KeyBytes(params, level), read)
	}
	var relinearisation *rlwe.RelinearizationKey
	if p.RelinearisationLevel >= 0 {
		key, err := next(p.RelinearisationLevel)
		if err != nil {
			return nil, err
		}
		relinearisation = &rlwe.RelinearizationKey{EvaluationKey: *key}
	}
	var rotations []*rlwe.GaloisKey
	for _, rotation := range slices.Sorted(maps.Keys(p.Rotations)) {
		key, err := next(p.Rotations[rotation])
		if err != nil {
			return nil, err
		}
		rotations = append(rotations, &rlwe.GaloisKey{
			GaloisElement: params.GaloisElement(rotation), NthRoot: params.RingQ().NthRoot(), EvaluationKey: *key,
		})
	}
	set := rlwe.NewMemEvaluationKeySet(relinearisation, rotations...)
	made := &received{zero: zero, evaluator: ckks.NewEvaluator(params, set)}
	if p.Circuit != nil {
		if made.refresher, err = bootstrap.Receive(p.Circuit, c.Receive); err != nil {
			return nil, err
		}
	}
	return made, nil
}
