package cohort

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/layers"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
	"privet/ckks/internal/wire"
)

// sendModel encrypts the model under the cohort's key, part by part in the order of evaluate.Assemble, unless flooding is
// to be statistical and would protect too little; it gives by how much it does.
func sendModel(c *channel.Channel, s *Setup, weights *program.Weights) (bits float64, err error) {
	data, err := c.Receive(wire.QPBytes(s.Params, 2))
	if err != nil {
		return 0, err
	}
	key := newPublicKey(s.Params)
	if err := wire.ReadQP(data, s.Params, key.Value...); err != nil {
		return 0, err
	}
	full, err := network.Build(s.Program, weights)
	if err != nil {
		return 0, err
	}
	full = full.WithBareSquares()
	if s.Plan.Holders > 0 {
		scene := flood.Scene{Holders: s.Members, Model: true, Magnitudes: s.Program.Magnitudes()}
		if bits, err = flood.Check(full, s.Plan, scene); err != nil {
			return bits, &session.Refusal{Reason: channel.BadRequest, Text: err.Error()}
		}
	}
	_, err = evaluate.Assemble(full, s.Plan, s.Params, sender{c, s, key})
	return bits, err
}

// sender encrypts and sends the parts of a model.
type sender struct {
	channel *channel.Channel
	setup   *Setup
	key     *rlwe.PublicKey
}

// seal encrypts a plaintext, as it is sent.
func (m sender) seal(pt *rlwe.Plaintext) ([]byte, error) {
	ct, err := rlwe.NewEncryptor(m.setup.Params, m.key).EncryptNew(pt)
	if err != nil {
		return nil, err
	}
	return wire.AppendPolys(nil, m.setup.Params, ct.Level(), ct.Value[0], ct.Value[1]), nil
}

func (m sender) Linear(t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	return nil, layers.EncryptLinear(m.setup.Params, t, matrix, m.setup.Plan.Batch, level, scale, m.seal, m.channel.Send)
}

func (m sender) Bias(layout packing.Layout, bias []float64, level int) ([]rlwe.Operand, error) {
	encoded, err := evaluate.EncodeBias(m.setup.Params, layout, bias, m.setup.Plan.Batch, level)
	if err != nil {
		return nil, err
	}
	for _, pt := range encoded {
		data, err := m.seal(pt)
		if err != nil {
			return nil, err
		}
		if err := m.channel.Send(data); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Series tells the coordinator the coefficients of a polynomial: it sums the polynomial, and could not hide its shape.
func (m sender) Series(node *network.Node) ([]float64, error) {
	return nil, m.channel.Send(wire.AppendSeries(nil, node.Coefficients))
}

// receiver takes over the parts of a model from its owner.
type receiver struct {
	channel *channel.Channel
	setup   *Setup
}

func (m receiver) next(level int) (*rlwe.Ciphertext, error) {
	params := m.setup.Params
	data, err := m.channel.Receive(wire.PolysBytes(params, level, 2))
	if err != nil {
		return nil, err
	}
	ct := ckks.NewCiphertext(params, 1, level)
	return ct, wire.ReadPolys(data, params, level, ct.Value[0], ct.Value[1])
}

func (m receiver) Linear(t *packing.Transform, _ *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	next := func() (*rlwe.Ciphertext, error) { return m.next(level) }
	return layers.TakeLinear(m.setup.Params, t, m.setup.Plan.Batch, level, scale, next)
}

func (m receiver) Bias(layout packing.Layout, _ []float64, level int) ([]rlwe.Operand, error) {
	made := make([]rlwe.Operand, layout.Ciphertexts)
	for i := range made {
		ct, err := m.next(level)
		if err != nil {
			return nil, err
		}
		made[i] = ct
	}
	return made, nil
}

func (m receiver) Series(node *network.Node) ([]float64, error) {
	data, err := m.channel.Receive(wire.SeriesBytes(node.Degree))
	if err != nil {
		return nil, err
	}
	return wire.ReadSeries(data)
}
