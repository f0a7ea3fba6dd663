package collective

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/multiparty"
	"github.com/tuneinsight/lattigo/v6/multiparty/mpckks"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/wire"
)

// Coordinator adds up members' shares. It has no secret; a share that is wrong is blamed on its member.
type Coordinator struct {
	params  ckks.Parameters
	common  *Common
	members int
	refresh *mpckks.RefreshProtocol
}

// NewCoordinator is a coordinator of a cohort.
func NewCoordinator(params ckks.Parameters, common *Common, members int) *Coordinator {
	return &Coordinator{params: params, common: common, members: members}
}

// each reads every member's share in turn.
func (c *Coordinator) each(shares [][]byte, take func(member int, data []byte) error) error {
	if len(shares) != c.members {
		return fmt.Errorf("%d shares of %d members", len(shares), c.members)
	}
	for member, data := range shares {
		if err := take(member, data); err != nil {
			return fmt.Errorf("member %d: %w", member, err)
		}
	}
	return nil
}

// PublicKey is the cohort's public key.
func (c *Coordinator) PublicKey(shares [][]byte) (*rlwe.PublicKey, error) {
	protocol := multiparty.NewPublicKeyGenProtocol(c.params)
	stream, err := c.common.stream(publicLabel)
	if err != nil {
		return nil, err
	}
	sum := protocol.AllocateShare()
	err = c.each(shares, func(_ int, data []byte) error {
		share := protocol.AllocateShare()
		if err := wire.ReadQP(data, c.params, share.Value); err != nil {
			return err
		}
		protocol.AggregateShares(sum, share, &sum)
		return nil
	})
	made := rlwe.NewPublicKey(c.params)
	protocol.GenPublicKey(sum, protocol.SampleCRP(stream), made)
	return made, err
}

// sumGadgets adds up shares that are gadget ciphertexts like `sum`.
func (c *Coordinator) sumGadgets(shares [][]byte, sum *rlwe.GadgetCiphertext) error {
	ringQP := c.params.RingQP().AtLevel(sum.LevelQ(), sum.LevelP())
	return c.each(shares, func(_ int, data []byte) error {
		share := rlwe.NewGadgetCiphertext(c.params, sum.Degree(), sum.LevelQ(), sum.LevelP(), 0)
		if err := wire.ReadGadget(data, c.params, share); err != nil {
			return err
		}
		for i, digit := range share.Value {
			for part := range digit[0] {
				ringQP.Add(sum.Value[i][0][part], digit[0][part], sum.Value[i][0][part])
			}
		}
		return nil
	})
}

// RelinearisationFirst is the sum that members need for their second share.
func (c *Coordinator) RelinearisationFirst(shares [][]byte) ([]byte, error) {
	_, sum, _ := multiparty.NewRelinearizationKeyGenProtocol(c.params).AllocateShare()
	if err := c.sumGadgets(shares, &sum.GadgetCiphertext); err != nil {
		return nil, err
	}
	return wire.AppendGadget(nil, c.params, &sum.GadgetCiphertext), nil
}

// Relinearisation is the cohort's relinearisation key, from the first sum and the second shares.
func (c *Coordinator) Relinearisation(first []byte, shares [][]byte) (*rlwe.RelinearizationKey, error) {
	protocol := multiparty.NewRelinearizationKeyGenProtocol(c.params)
	_, one, two := protocol.AllocateShare()
	if err := wire.ReadGadget(first, c.params, &one.GadgetCiphertext); err != nil {
		return nil, err
	}
	if err := c.sumGadgets(shares, &two.GadgetCiphertext); err != nil {
		return nil, err
	}
	made := rlwe.NewRelinearizationKey(c.params)
	protocol.GenRelinearizationKey(one, two, made)
	return made, nil
}

// Rotation is the cohort's key for a rotation of ciphertexts up to a level.
func (c *Coordinator) Rotation(slots, level int, shares [][]byte) (*rlwe.GaloisKey, error) {
	protocol := multiparty.NewGaloisKeyGenProtocol(c.params)
	stream, err := c.common.stream(rotationLabel(slots))
	if err != nil {
		return nil, err
	}
	options := rlwe.EvaluationKeyParameters{LevelQ: &level}
	sum := protocol.AllocateShare(options)
	sum.GaloisElement = c.params.GaloisElement(slots)
	if err := c.sumGadgets(shares, &sum.GadgetCiphertext); err != nil {
		return nil, err
	}
	made := rlwe.NewGaloisKey(c.params, options)
	return made, protocol.GenGaloisKey(sum, protocol.SampleCRP(stream, options), made)
}

func (c *Coordinator) refreshing() (*mpckks.RefreshProtocol, error) {
	if c.refresh == nil {
		made, err := newRefresh(c.params)
		if err != nil {
			return nil, err
		}
		c.refresh = &made
	}
	return c.refresh, nil
}

// Refresh is a ciphertext's value, which repeats after `period` slots, in a fresh one at a level and the default scale.
func (c *Coordinator) Refresh(label string, ct *rlwe.Ciphertext, level, period int, shares [][]byte) (*rlwe.Ciphertext, error) {
	if _, err := refreshBound(c.params, c.members, ct.Level()); err != nil {
		return nil, err
	}
	protocol, err := c.refreshing()
	if err != nil {
		return nil, err
	}
	stream, err := c.common.stream(refreshLabel(label))
	if err != nil {
		return nil, err
	}
	crp := protocol.SampleCRP(level, stream)
	split := wire.PolysBytes(c.params, ct.Level(), 1)
	old := ct.CopyNew()
	old.Scale, old.LogDimensions = c.params.DefaultScale(), dimensions(period)
	sum := protocol.AllocateShare(ct.Level(), level)
	sum.MetaData = *old.MetaData
	err = c.each(shares, func(_ int, data []byte) error {
		share := protocol.AllocateShare(ct.Level(), level)
		share.MetaData = *old.MetaData
		if len(data) < split {
			return fmt.Errorf("a share of %d bytes", len(data))
		}
		if err := wire.ReadPolys(data[:split], c.params, ct.Level(), share.EncToShareShare.Value); err != nil {
			return err
		}
		if err := wire.ReadPolys(data[split:], c.params, level, share.ShareToEncShare.Value); err != nil {
			return err
		}
		return protocol.AggregateShares(&sum, &share, &sum)
	})
	if err != nil {
		return nil, err
	}
	made := ckks.NewCiphertext(c.params, 1, level)
	err = protocol.Finalize(old, crp, sum, made)
	made.LogDimensions = c.params.LogMaxDimensions()
	return made, err
}

// RefreshSize is the size of a share of a refresh from one level to another.
func (c *Coordinator) RefreshSize(from, to int) int {
	return wire.PolysBytes(c.params, from, 1) + wire.PolysBytes(c.params, to, 1)
}

// Switch is a result under the client's own key.
func (c *Coordinator) Switch(ct *rlwe.Ciphertext, shares [][]byte) (*rlwe.Ciphertext, error) {
	level := ct.Level()
	made := ct.CopyNew()
	made.Value[1].Zero()
	ringQ := c.params.RingQ().AtLevel(level)
	err := c.each(shares, func(_ int, data []byte) error {
		share := ckks.NewCiphertext(c.params, 1, level)
		if err := wire.ReadPolys(data, c.params, level, share.Value[0], share.Value[1]); err != nil {
			return err
		}
		for part := range 2 {
			ringQ.Add(made.Value[part], share.Value[part], made.Value[part])
		}
		return nil
	})
	return made, err
}

// Sizes of members' shares in bytes.
type Sizes struct{ PublicKey, First, Second int }

// Sizes are those of shares that depend on nothing but parameters.
func (c *Coordinator) Sizes() Sizes {
	_, first, second := multiparty.NewRelinearizationKeyGenProtocol(c.params).AllocateShare()
	return Sizes{
		PublicKey: wire.QPBytes(c.params, 1),
		First:     wire.GadgetBytes(c.params, &first.GadgetCiphertext),
		Second:    wire.GadgetBytes(c.params, &second.GadgetCiphertext),
	}
}

// RotationSize is the size of a share of a rotation key for a level.
func (c *Coordinator) RotationSize(level int) int {
	return wire.KeyBytes(c.params, level) - wire.SeedBytes
}

// SwitchSize is the size of a share of a result at a level.
func (c *Coordinator) SwitchSize(level int) int { return wire.PolysBytes(c.params, level, 2) }
