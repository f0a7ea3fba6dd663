package cohort

import (
	"errors"
	"fmt"
	"sync"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/wire"
)

// refreshes are the levels to which ciphertexts are refreshed in one run, in order: the same list at every party.
func (s *Setup) refreshes() []int {
	var levels []int
	for index, layout := range s.Plan.Layouts {
		for range layout.Ciphertexts {
			if s.Plan.Arguments[index] {
				levels = append(levels, s.Plan.Argument[index])
			}
		}
		for range layout.Ciphertexts {
			if s.Plan.Values[index] {
				levels = append(levels, s.Plan.Made[index])
			}
		}
	}
	return levels
}

// refreshName is the label that a refresh's common polynomial grows from: each has its own.
func refreshName(count int) string { return fmt.Sprint(count) }

// refresher has members refresh ciphertexts: collective bootstrapping.
type refresher struct {
	hub  *hub
	done int
}

// Refresh asks every member for its shares, side by side, and names the member that fails; nothing is asked twice.
func (r *refresher) Refresh(values evaluate.Values, level int) (evaluate.Values, error) {
	h := r.hub
	floor := h.setup.Plan.Floor
	size := h.sums.RefreshSize(floor, level)
	shares := make([][][]byte, len(values))
	for i := range shares {
		shares[i] = make([][]byte, len(h.members))
	}
	failures := make([]error, len(h.members))
	var group sync.WaitGroup
	for member, link := range h.members {
		group.Go(func() {
			for i, ct := range values {
				err := link.Send(wire.AppendPolys(nil, h.setup.Params, floor, ct.Value[1]))
				if err == nil {
					shares[i][member], err = link.Receive(size)
				}
				if err != nil {
					failures[member] = blame(member, err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	made := make(evaluate.Values, len(values))
	for i, ct := range values {
		var err error
		if made[i], err = h.sums.Refresh(refreshName(r.done), ct, level, shares[i]); err != nil {
			return nil, channel.Misbehaviour(err.Error())
		}
		shares[i] = nil
		r.done++
	}
	return made, nil
}

// refresh is a member's part in all refreshes of a run: as many as the plan has, and no more.
func refresh(c *channel.Channel, s *Setup, m *collective.Member) error {
	for done, level := range s.refreshes() {
		data, err := c.Receive(wire.PolysBytes(s.Params, s.Plan.Floor, 1))
		if err != nil {
			return err
		}
		second := s.Params.RingQ().AtLevel(s.Plan.Floor).NewPoly()
		if err := wire.ReadPolys(data, s.Params, s.Plan.Floor, second); err != nil {
			return err
		}
		share, err := m.Refresh(refreshName(done), second, level)
		if err != nil {
			return err
		}
		if err := c.Send(share); err != nil {
			return err
		}
	}
	return nil
}
