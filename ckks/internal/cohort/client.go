package cohort

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/codec"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/session"
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
	private, err := secret.New(s.Params)
	if err != nil {
		return nil, err
	}
	public := private.Public()
	key, err := receivePublicKey(c, s.Params)
	if err != nil {
		return nil, err
	}
	if err := c.Send(wire.AppendQP(nil, s.Params, public.Value...)); err != nil {
		return nil, err
	}
	// Results are handed out under the key that is stated.
	if _, err := state(c, own, purposeClient, s.keysChecked(key, public)); err != nil {
		return nil, err
	}
	if err := checkVouchers(c, own, s, key, public); err != nil {
		return nil, err
	}
	ready()
	if err := encrypt(c, s, key, inputs); err != nil {
		return nil, err
	}
	var results session.Results
	if err := s.Groups(func(first, last int) error { return s.Decrypt(c, private, &results, last-first) }); err != nil {
		return nil, err
	}
	return results.Outputs()
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
