package cohort

import (
	"crypto/rand"
	"encoding/json"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/layers"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
	"privet/ckks/internal/wire"
)

// Member takes part in one inference as member `index`. Member 0 has the weights (nil at all others), which it encrypts
// under the cohort's key; it alone knows, and gives, by how many bits flooding protects the key.
func Member(c *channel.Channel, s *Setup, index int, weights *program.Weights) (bits float64, err error) {
	if err := introduce(c, hello{roleMember, index, s.Members, s.Program.Hash}); err != nil {
		return 0, err
	}
	m, err := join(c, s)
	if err != nil {
		return 0, err
	}
	if err := makeKeys(c, s, m); err != nil {
		return 0, err
	}
	if weights != nil {
		if bits, err = sendModel(c, s, weights); err != nil {
			return bits, err
		}
	}
	return bits, handOut(c, s, m)
}

func introduce(c *channel.Channel, h hello) error {
	if err := session.Greet(c); err != nil {
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return c.Send(text)
}

// join adds to the common randomness and makes a share of the key.
func join(c *channel.Channel, s *Setup) (*collective.Member, error) {
	own := make([]byte, collective.ContributionBytes)
	if _, err := rand.Read(own); err != nil {
		return nil, err
	}
	if err := c.Send(own); err != nil {
		return nil, err
	}
	all, err := c.Receive(s.Members * collective.ContributionBytes)
	if err != nil {
		return nil, err
	}
	var contributions [][]byte
	for len(all) > 0 {
		contributions, all = append(contributions, all[:collective.ContributionBytes]), all[collective.ContributionBytes:]
	}
	common, err := collective.NewCommon(contributions)
	if err != nil {
		return nil, err
	}
	return collective.NewMember(s.Params, common, s.Members, s.Plan.Budget)
}

func makeKeys(c *channel.Channel, s *Setup, m *collective.Member) error {
	send := func(share []byte, err error) error {
		if err != nil {
			return err
		}
		return c.Send(share)
	}
	if err := send(m.PublicKey()); err != nil {
		return err
	}
	if err := send(m.RelinearisationFirst()); err != nil {
		return err
	}
	sizes := collective.NewCoordinator(s.Params, nil, s.Members).Sizes()
	sum, err := c.Receive(sizes.First)
	if err != nil {
		return err
	}
	if err := send(m.RelinearisationSecond(sum)); err != nil {
		return err
	}
	for _, slots := range s.rotations() {
		if err := send(m.Rotation(slots, s.Plan.Rotations[slots])); err != nil {
			return err
		}
	}
	return nil
}

// handOut helps with each result: the client's public key comes first, then one ciphertext after the other.
func handOut(c *channel.Channel, s *Setup, m *collective.Member) error {
	client := newPublicKey(s.Params)
	data, err := c.Receive(wire.QPBytes(s.Params, 2))
	if err != nil {
		return err
	}
	if err := wire.ReadQP(data, s.Params, client.Value...); err != nil {
		return err
	}
	for _, output := range s.results() {
		data, err := c.Receive(wire.ResultBytes(s.Params, s.Plan.Set.Floor()))
		if err != nil {
			return err
		}
		ct, err := wire.ReadResult(data, s.Params, s.Plan.Set.Floor())
		if err != nil {
			return err
		}
		share, err := m.Switch(client, ct, flood.New(s.Plan.FloodDeviation(output), s.Plan.Period(output)))
		if err != nil {
			return err
		}
		if err := c.Send(share); err != nil {
			return err
		}
	}
	return nil
}

// sendModel encrypts the model under the cohort's key, part by part in the order of evaluate.Assemble, unless flooding
// would protect too little; it gives by how much it does.
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
	if full, err = full.WithBareSquares(); err != nil {
		return 0, err
	}
	scene := flood.Scene{Holders: s.Members, Model: true, Magnitudes: s.Program.Magnitudes()}
	if bits, err = flood.Check(full, s.Plan, scene); err != nil {
		return bits, &session.Refusal{Reason: channel.BadRequest, Text: err.Error()}
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

func (m sender) send(ct *rlwe.Ciphertext) error {
	params := m.setup.Params
	return m.channel.Send(wire.AppendPolys(nil, params, ct.Level(), ct.Value[0], ct.Value[1]))
}

func (m sender) Linear(t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	encryptor := rlwe.NewEncryptor(m.setup.Params, m.key)
	return nil, layers.EncodeDiagonals(m.setup.Params, t, matrix, m.setup.Plan.Batch, level, scale, func(pt *rlwe.Plaintext) error {
		ct, err := encryptor.EncryptNew(pt)
		if err != nil {
			return err
		}
		return m.send(ct)
	})
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
