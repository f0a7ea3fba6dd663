package cohort

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/codec"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/wire"
)

// Client encrypts inputs, a row for each sample of each input, under the cohort's key, and gets the outputs under its own.
// `own`, the client's certificate, signs its own, and all members must vouch for both before it encrypts.
func Client(c *channel.Channel, own *channel.Credentials, s *Setup, inputs [][][]float64, ready func()) ([][][]float64, error) {
	if err := s.Check(inputs); err != nil {
		return nil, err
	}
	if err := introduce(c, s.hello(roleClient, 0)); err != nil {
		return nil, err
	}
	secret, public := rlwe.NewKeyGenerator(s.Params).GenKeyPairNew()
	data, err := c.Receive(wire.QPBytes(s.Params, 2))
	if err != nil {
		return nil, err
	}
	key := newPublicKey(s.Params)
	if err := wire.ReadQP(data, s.Params, key.Value...); err != nil {
		return nil, err
	}
	if err := c.Send(wire.AppendQP(nil, s.Params, public.Value...)); err != nil {
		return nil, err
	}
	statement, err := signKey(own, s, key, public)
	if err != nil {
		return nil, err
	}
	if err := c.Send(statement); err != nil {
		return nil, err
	}
	if err := checkVouchers(c, own, s, key, public); err != nil {
		return nil, err
	}
	ready()
	if err := encrypt(c, s, key, inputs); err != nil {
		return nil, err
	}
	return decrypt(c, s, secret)
}

// encrypt sends inputs group by group.
func encrypt(c *channel.Channel, s *Setup, key *rlwe.PublicKey, inputs [][][]float64) error {
	encryptor, encoder := rlwe.NewEncryptor(s.Params, key), codec.New(s.Params)
	send := func(_ int, slots []float64) error {
		pt := ckks.NewPlaintext(s.Params, s.Params.MaxLevel())
		if err := encoder.Encode(slots, pt); err != nil {
			return err
		}
		ct, err := encryptor.EncryptNew(pt)
		if err != nil {
			return err
		}
		return c.Send(wire.AppendPolys(nil, s.Params, ct.Level(), ct.Value[0], ct.Value[1]))
	}
	return s.Groups(func(first, last int) error { return s.Fill(inputs, first, last, send) })
}

// decrypt receives outputs group by group.
func decrypt(c *channel.Channel, s *Setup, secret *rlwe.SecretKey) ([][][]float64, error) {
	decryptor, encoder, level := rlwe.NewDecryptor(s.Params, secret), codec.New(s.Params), s.Plan.Set.Floor()
	receive := func(output int) ([]float64, error) {
		data, err := c.Receive(wire.ResultBytes(s.Params, level))
		if err != nil {
			return nil, err
		}
		ct, err := wire.ReadResult(data, s.Params, level)
		if err != nil {
			return nil, err
		}
		ct.Scale = s.Params.DefaultScale()
		slots := make([]float64, s.Params.MaxSlots())
		pt := decryptor.DecryptNew(ct)
		flood.Keep(s.Params.RingQ().AtLevel(pt.Level()), pt.Value, s.Plan.Period(output))
		return slots, encoder.Decode(pt, slots)
	}
	var outputs [][][]float64
	err := s.Groups(func(first, last int) error {
		var slots [][]float64
		for _, output := range s.Outputs() {
			values, err := receive(output)
			if err != nil {
				return err
			}
			slots = append(slots, values)
		}
		s.Collect(&outputs, slots, last-first)
		return nil
	})
	return outputs, err
}
