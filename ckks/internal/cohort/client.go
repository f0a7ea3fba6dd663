package cohort

import (
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/codec"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/network"
	"privet/ckks/internal/wire"
)

// Client encrypts inputs, a row for each sample of each input, under the cohort's key, and gets the outputs under its own.
// `own`, the client's certificate, signs its own, and all members must vouch for both before it encrypts.
func Client(c *channel.Channel, own *channel.Credentials, s *Setup, inputs [][][]float64, ready func()) ([][][]float64, error) {
	if err := checkInputs(s, inputs); err != nil {
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

func checkInputs(s *Setup, inputs [][][]float64) error {
	for i, input := range s.Program.Inputs {
		for _, sample := range inputs[i] {
			for _, value := range sample {
				if !(math.Abs(value) <= input.Magnitude) {
					return fmt.Errorf("input %s holds %v, and the program was compiled for magnitudes up to %v", input.Name, value, input.Magnitude)
				}
			}
		}
	}
	return nil
}

// encrypt sends inputs group by group.
func encrypt(c *channel.Channel, s *Setup, key *rlwe.PublicKey, inputs [][][]float64) error {
	for group := range s.Plan.Groups {
		first, last := s.samples(group)
		if err := encryptGroup(c, s, key, inputs, first, last); err != nil {
			return err
		}
	}
	return nil
}

func encryptGroup(c *channel.Channel, s *Setup, key *rlwe.PublicKey, inputs [][][]float64, first, last int) error {
	encryptor, encoder := rlwe.NewEncryptor(s.Params, key), codec.New(s.Params)
	for i := range inputs {
		for _, slots := range s.Plan.Layouts[i].Fill(inputs[i][first:last], s.Plan.Batch) {
			pt := ckks.NewPlaintext(s.Params, s.Params.MaxLevel())
			if err := encoder.Encode(slots, pt); err != nil {
				return err
			}
			ct, err := encryptor.EncryptNew(pt)
			if err != nil {
				return err
			}
			if err := c.Send(wire.AppendPolys(nil, s.Params, ct.Level(), ct.Value[0], ct.Value[1])); err != nil {
				return err
			}
		}
	}
	return nil
}

// decrypt receives outputs group by group.
func decrypt(c *channel.Channel, s *Setup, secret *rlwe.SecretKey) ([][][]float64, error) {
	var outputs [][][]float64
	for group := range s.Plan.Groups {
		first, last := s.samples(group)
		made, err := decryptGroup(c, s, secret, last-first)
		if err != nil {
			return nil, err
		}
		if outputs == nil {
			outputs = make([][][]float64, len(made))
		}
		for i, samples := range made {
			outputs[i] = append(outputs[i], samples...)
		}
	}
	return outputs, nil
}

func decryptGroup(c *channel.Channel, s *Setup, secret *rlwe.SecretKey, samples int) ([][][]float64, error) {
	decryptor, encoder := rlwe.NewDecryptor(s.Params, secret), codec.New(s.Params)
	var outputs [][][]float64
	for index, node := range s.Network.Nodes {
		if node.Kind != network.Output {
			continue
		}
		layout := s.Plan.Layouts[index]
		slots := make([][]float64, layout.Ciphertexts)
		for i := range slots {
			data, err := c.Receive(wire.ResultBytes(s.Params, s.Plan.Set.Floor()))
			if err != nil {
				return nil, err
			}
			ct, err := wire.ReadResult(data, s.Params, s.Plan.Set.Floor())
			if err != nil {
				return nil, err
			}
			ct.Scale = s.Params.DefaultScale()
			slots[i] = make([]float64, s.Params.MaxSlots())
			pt := decryptor.DecryptNew(ct)
			flood.Keep(s.Params.RingQ().AtLevel(pt.Level()), pt.Value, s.Plan.Period(index))
			if err := encoder.Decode(pt, slots[i]); err != nil {
				return nil, err
			}
		}
		outputs = append(outputs, layout.Take(slots, s.Plan.Batch, samples))
	}
	return outputs, nil
}
