package media

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/selvage/selvage/calls"
)

// reports holds what a client reports about our stream.
type reports struct {
	lastReport uint32    // middle bits of the NTP time of our last sender report
	lastAt     time.Time // when that report was sent
	roundTrip  time.Duration
	lost       float64 // fraction of packets lost since the client's previous report
}

// recordSent records that a sender report was sent.
func (r *reports) recordSent(middle uint32, now time.Time) {
	r.lastReport = middle
	r.lastAt = now
}

// recordBlock records a report block (RFC 3550, section 6.4.1).
func (r *reports) recordBlock(b rtcp.ReceptionReport, now time.Time) {
	r.lost = float64(b.FractionLost) / 256
	if b.LastSenderReport == 0 || b.LastSenderReport != r.lastReport {
		return
	}
	delay := time.Duration(b.Delay) * time.Second / 65536
	r.roundTrip = max(0, now.Sub(r.lastAt)-delay)
}

// quality fills in the fields of q that come from reports.
func (r *reports) quality(q *calls.Quality) {
	q.RoundTrip = r.roundTrip
	q.LostThere = r.lost
}
