package session

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/layers"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/wire"
)

// Sender is an evaluate.Maker that encrypts the parts of a model and sends them.
type Sender struct {
	Params  ckks.Parameters
	Batch   int
	Channel *channel.Channel
	// Seal encrypts a plaintext, as it is sent.
	Seal func(*rlwe.Plaintext) ([]byte, error)
}

// Linear sends a matrix, one ciphertext for each diagonal.
func (s Sender) Linear(t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	return nil, layers.EncryptLinear(s.Params, t, matrix, s.Batch, level, scale, s.Seal, s.Channel.Send)
}

// Bias sends a bias.
func (s Sender) Bias(layout packing.Layout, bias []float64, level int) ([]rlwe.Operand, error) {
	encoded, err := evaluate.EncodeBias(s.Params, layout, bias, s.Batch, level)
	if err != nil {
		return nil, err
	}
	for _, pt := range encoded {
		if err := s.Channel.Deliver(s.Seal(pt)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Series tells the coefficients of a polynomial: who sums it has to know them.
func (s Sender) Series(node *network.Node) ([]float64, error) {
	return nil, s.Channel.Send(wire.AppendSeries(nil, node.Coefficients))
}

// Evaluates is false: the model goes to somebody else.
func (s Sender) Evaluates() bool { return false }

// Taker is an evaluate.Maker that takes over the parts of a model as a Sender sends them.
type Taker struct {
	Params  ckks.Parameters
	Batch   int
	Channel *channel.Channel
	// Next takes a ciphertext at a level, as it was sealed.
	Next func(level int) (*rlwe.Ciphertext, error)
}

// Evaluates is true: the model is for whoever takes it.
func (m Taker) Evaluates() bool { return true }

// Linear takes a matrix.
func (m Taker) Linear(t *packing.Transform, _ *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	next := func() (*rlwe.Ciphertext, error) { return m.Next(level) }
	return layers.TakeLinear(m.Params, t, m.Batch, level, scale, next)
}

// Bias takes a bias.
func (m Taker) Bias(layout packing.Layout, _ []float64, level int) ([]rlwe.Operand, error) {
	made := make([]rlwe.Operand, layout.Ciphertexts)
	for i := range made {
		ct, err := m.Next(level)
		if err != nil {
			return nil, err
		}
		made[i] = ct
	}
	return made, nil
}

// Series takes the coefficients of a polynomial.
func (m Taker) Series(node *network.Node) ([]float64, error) {
	data, err := m.Channel.Receive(wire.SeriesBytes(node.Degree))
	if err != nil {
		return nil, err
	}
	made, err := wire.ReadSeries(data)
	if err != nil {
		return nil, channel.Misbehaviour(err.Error())
	}
	return made, nil
}
