package rtpengine

import (
	"context"
	"crypto/rand"
	"net/netip"
	"sync"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A Place contains the addresses at which an rtpengine receives media. External is for clients.
// Internal is for unencrypted media from rtpengine itself and from selvage.
type Place struct{ External, Internal netip.Addr }

// Probe opens a session at a daemon, as a call would, and ends it. It returns the addresses that the
// daemon used.
func Probe(ctx context.Context, address string) (at Place, err error) {
	d, err := dial(address, ctx.Done())
	if err != nil {
		return at, err
	}
	var reads sync.WaitGroup
	reads.Go(d.read)
	stop := context.AfterFunc(ctx, func() { _ = d.close() })
	defer func() {
		stop()
		_ = d.close()
		reads.Wait()
	}()

	drain := addressOf(d.drain)
	o := sdp.Section{Kind: sdp.Audio, Protocol: "RTP/AVP", Address: drain.Addr(), Port: int(drain.Port())}
	o.SetCodecs([]sdp.Codec{{Type: 0, Name: sdp.PCMU, Clock: 8000}})
	offer := (&sdp.Description{Session: 1, Version: 1, Sections: []sdp.Section{o}}).Phone()
	session := rand.Text()
	defer func() { _, _ = d.request("delete", dict{"call-id": session, "delete-delay": 0}) }()

	// describe sends an offer or an answer, and returns the address in rtpengine's description.
	describe := func(command, key string, value any) (netip.Addr, error) {
		reply, err := d.request(command, dict{
			"call-id":  session,
			"from-tag": clientTag,
			"sdp":      offer,
			"ICE":      "remove",
			"flags":    []string{"trust-address"},
			key:        value,
		})
		if err != nil {
			return netip.Addr{}, err
		}
		ports, err := readInner(reply.text("sdp"))
		if err != nil {
			return netip.Addr{}, err
		}
		return ports[calls.Audio].Addr(), nil
	}

	at.Internal, err = describe("offer", "direction", []string{"external", "internal"})
	if err != nil {
		return at, err
	}
	at.External, err = describe("answer", "to-tag", switchTag)
	return at, err
}
