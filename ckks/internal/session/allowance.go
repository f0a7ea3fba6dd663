package session

import (
	"sync"
	"time"

	"privet/ckks/internal/channel"
)

// Allowances count the inferences of each peer in the last minute, over all its sessions.
type Allowances struct {
	mutex sync.Mutex
	begun map[string][]time.Time
}

// Take refuses an inference beyond what the peer may have in a minute. Answers tell of the weights bit by bit, whatever
// protects them: the limit is the price of extracting a model.
func (a *Allowances) Take(peer string, perMinute int, now time.Time) error {
	if perMinute == 0 {
		return nil
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.forget(now.Add(-time.Minute))
	if len(a.begun[peer]) >= perMinute {
		return Refuse(channel.Busy, "more than %d inferences in a minute", perMinute)
	}
	if a.begun == nil {
		a.begun = map[string][]time.Time{}
	}
	a.begun[peer] = append(a.begun[peer], now)
	return nil
}

func (a *Allowances) forget(before time.Time) {
	for peer, times := range a.begun {
		for len(times) > 0 && !times[0].After(before) {
			times = times[1:]
		}
		if a.begun[peer] = times; len(times) == 0 {
			delete(a.begun, peer)
		}
	}
}
