package session

import (
	"os"
	"strconv"
	"strings"
	"time"

	"privet/ckks/internal/channel"
)

// Cost is what a phase took, as a party saw it. CPUSeconds are of the whole process.
type Cost struct {
	Seconds       float64 `json:"seconds"`
	CPUSeconds    float64 `json:"cpu_seconds"`
	BytesSent     int64   `json:"bytes_sent"`
	BytesReceived int64   `json:"bytes_received"`
	Rounds        int     `json:"rounds"`
	PeakRSS       float64 `json:"peak_rss_mb"`
}

// Meter measures a phase on a channel.
type Meter struct {
	channel        *channel.Channel
	start          time.Time
	cpu            float64
	sent, received int64
	rounds         int
}

// Begin starts measuring a phase; without a channel, no traffic.
func Begin(c *channel.Channel) Meter {
	if c == nil {
		return Meter{start: time.Now(), cpu: ProcessorSeconds()}
	}
	return Meter{c, time.Now(), ProcessorSeconds(), c.Sent, c.Received, c.Rounds}
}

// Restarted measures time from now on, and traffic as before.
func (m Meter) Restarted() Meter {
	m.start = time.Now()
	return m
}

// End is what the phase took.
func (m Meter) End() Cost {
	if m.channel == nil {
		m.channel = &channel.Channel{}
	}
	return Cost{
		Seconds:    time.Since(m.start).Seconds(),
		CPUSeconds: ProcessorSeconds() - m.cpu,
		BytesSent:  m.channel.Sent - m.sent, BytesReceived: m.channel.Received - m.received,
		Rounds: m.channel.Rounds - m.rounds, PeakRSS: float64(memory("VmHWM")) / 1e6,
	}
}

// Resident is the resident memory of this process in bytes, 0 where the system does not tell.
func Resident() int64 { return memory("VmRSS") }

func memory(field string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if name == field {
			kilobytes, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}
