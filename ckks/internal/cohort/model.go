package cohort

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/layers"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/program"
	"privet/ckks/internal/wire"
)

// sendModel encrypts the model under the cohort's key, part by part in the order of evaluate.Assemble.
func sendModel(c *channel.Channel, s *Setup, weights *program.Weights) error {
	data, err := c.Receive(wire.QPBytes(s.Params, 2))
	if err != nil {
		return err
	}
	key := newPublicKey(s.Params)
	if err := wire.ReadQP(data, s.Params, key.Value...); err != nil {
		return err
	}
	full, err := network.Build(s.Program, weights)
	if err != nil {
		return err
	}
	_, err = evaluate.Assemble(full.WithBareSquares(), s.Plan, s.Params, sender{c, s, key})
	return err
}

// sender encrypts and sends the parts of a model.
type sender struct {
	channel *channel.Channel
	setup   *Setup
	key     *rlwe.PublicKey
}

func (m sender) send(ct *rlwe.Ciphertext) error {
	params := m.setup.Params
	return m.channel.Send(wire.AppendPolys(nil, params, ct.Level(), ct.Value[0], ct.Value[1]))
}

func (m sender) Linear(t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	return nil, layers.EncryptLinear(m.setup.Params, t, matrix, m.setup.Plan.Batch, level, scale, m.key, m.send)
}

func (m sender) Bias(layout packing.Layout, bias []float64, level int) ([]rlwe.Operand, error) {
	encoded, err := evaluate.EncodeBias(m.setup.Params, layout, bias, m.setup.Plan.Batch, level)
	if err != nil {
		return nil, err
	}
	encryptor := rlwe.NewEncryptor(m.setup.Params, m.key)
	for _, pt := range encoded {
		ct, err := encryptor.EncryptNew(pt)
		if err != nil {
			return nil, err
		}
		if err := m.send(ct); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Series tells the coordinator the coefficients of a polynomial: it sums the polynomial, and could not hide its shape.
func (m sender) Series(node *network.Node) ([]float64, error) {
	var data []byte
	for _, coefficient := range node.Coefficients {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(coefficient))
	}
	return nil, m.channel.Send(data)
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

// maxCoefficient bounds what an owner may send; polynomials of larger coefficients leave the range of any result.
const maxCoefficient = 1 << 20

// seriesBytes is the size of a polynomial's coefficients.
func seriesBytes(degree int) int { return 8 * (degree + 1) }

func (m receiver) Series(node *network.Node) ([]float64, error) {
	data, err := m.channel.Receive(seriesBytes(node.Degree))
	if err != nil {
		return nil, err
	}
	made := make([]float64, node.Degree+1)
	for i := range made {
		made[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		if !(math.Abs(made[i]) <= maxCoefficient) {
			return nil, fmt.Errorf("a coefficient of a polynomial is %v", made[i])
		}
	}
	return made, nil
}
