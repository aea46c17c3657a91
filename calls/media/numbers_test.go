package media

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// TestKeystreams shows that no two packets are encrypted with the same keystream, no matter how a
// client's sequence numbers jump. A packet's keystream is its plaintext XORed with its ciphertext.
// Two packets of one stream have the same keystream if, and only if, they have the same index (RFC
// 3711, section 9.1).
func TestKeystreams(t *testing.T) {
	const jump = 1 << 15
	tests := []struct {
		name    string
		first   uint16   // first sequence number that we send
		seqs    []uint32 // sequence numbers of the client
		sendAll bool     // no packet may be dropped
	}{
		{
			name:  "half of the range backward",
			first: 1,
			seqs:  []uint32{1, 2, jump - 1, jump, jump + 1, 1, 2, 3, jump + 2, jump + 3},
		},
		{
			name:  "half of the range forward",
			first: jump - 1,
			seqs:  []uint32{1, 2, jump - 1, jump + 10, 10, 11, jump + 11, 12},
		},
		{
			name:  "again and again",
			first: jump - 2,
			seqs: []uint32{
				0, jump - 1, 2*jump - 2, 3*jump - 3, 2*jump - 3, 3*jump - 3, 4*jump - 3, 3*jump - 3, 2*jump - 3,
			},
		},
		{
			name:  "one full cycle without being forwarded",
			first: 1,
			seqs:  []uint32{100, 101, 102, 2*jump + 101, 2*jump + 102, 2*jump + 103},
		},
		{
			name:    "reordered",
			first:   1,
			seqs:    []uint32{10, 12, 11, 14, 13, 15},
			sendAll: true,
		},
	}
	for _, tt := range tests {
		p := newPair(t, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
		from, to := p.linked()
		to.out.last.seq = tt.first - 1
		used := map[[payloadSize]byte]int{}
		for i, seq := range tt.seqs {
			plain := make([]byte, 12+payloadSize)
			plain[0] = 0x80
			plain[1] = 111
			binary.BigEndian.PutUint16(plain[2:], uint16(seq))
			plain[12] = byte(i) // makes each packet different
			header, _ := parse(plain)
			before := to.out.sent
			to.out.forward(p.worker, from, plain, header, sdp.Opus, time.Now())
			if to.out.sent == before {
				continue
			}

			var stream [payloadSize]byte
			for j := range stream {
				stream[j] = plain[12+j] ^ p.worker.sealed[12+j]
			}
			if other, twice := used[stream]; twice {
				t.Errorf("%s: packets %d and %d have the same keystream", tt.name, other, i)
			}
			used[stream] = i
		}

		if tt.sendAll && len(used) != len(tt.seqs) {
			t.Errorf("%s: %d of %d packets were sent, want all", tt.name, len(used), len(tt.seqs))
		}
	}
}

// payloadSize is the size of the payloads whose keystreams the test compares.
const payloadSize = 16

// linked returns the sending and the receiving section.
func (p *pair) linked() (from, to *section) {
	for l := range p.engine.legs {
		if r := l.sections[0].route.Load(); r != nil {
			return l.sections[0], r.to
		}
	}
	return nil, nil
}
