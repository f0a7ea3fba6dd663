package session

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/wire"
)

// masker hides results from the owner of the key that they are under: a fresh encryption of zero makes the second part as
// good as uniform, whatever the owner knows, and a uniform mask modulo the last modulus the first. The owner decrypts a
// uniform polynomial.
type masker struct {
	*evaluate.Randomiser
	params ckks.Parameters
	// masks are those of results in their order, in NTT form.
	masks []ring.Poly
}

// Flood adds a mask.
func (m *masker) Flood(result *rlwe.Ciphertext, _ int) error {
	ringQ := m.params.RingQ().AtLevel(result.Level())
	mask, err := flood.Uniform(ringQ)
	if err != nil {
		return err
	}
	ringQ.Add(result.Value[0], mask, result.Value[0])
	m.masks = append(m.masks, mask)
	return nil
}

// opened has a masked result decrypted by the server, and takes off the mask.
func (e *Evaluator) opened(ct *rlwe.Ciphertext, mask ring.Poly, output int) ([]float64, error) {
	if err := e.channel.Deliver(wire.AppendResult(nil, e.Params, ct)); err != nil {
		return nil, err
	}
	level, period := ct.Level(), e.Plan.Period(output)
	read := func(data []byte) (ring.Poly, error) { return wire.ReadOpened(data, e.Params, level, period) }
	poly, err := receive(e.channel, "a decryption", wire.OpenedBytes(e.Params, level, period), read)
	if err != nil {
		return nil, err
	}
	ringQ := e.Params.RingQ().AtLevel(level)
	ringQ.NTT(poly, poly)
	ringQ.Sub(poly, mask, poly)
	flood.Keep(ringQ, poly, period)
	pt := ckks.NewPlaintext(e.Params, level)
	pt.Value.Copy(poly)
	slots := make([]float64, e.Params.MaxSlots())
	return slots, codec.New(e.Params).Decode(pt, slots)
}
