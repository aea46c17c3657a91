package doctor

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// The tests make up to tries attempts, because a busy machine may answer too late.
const tries = 3

// TestMediaUnreachable shows that doctor names the transports by which a running server does not
// answer.
func TestMediaUnreachable(t *testing.T) {
	here := netip.MustParseAddr("127.0.0.1")
	for _, tt := range []struct {
		name   string
		config media.Config
		want   []string // transports in the finding
	}{
		{"open", media.Config{}, nil},
		{"without UDP", media.Config{NoUDP: true}, []string{"UDP"}},
		{"without TCP", media.Config{NoTCP: true}, []string{"TCP"}},
	} {
		tt.config.Listen = "127.0.0.1:0"
		engine, err := media.New(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close() })
		e := &Examination{
			alive: true,
			running: datadir.Running{
				Media: netip.AddrPortFrom(here, uint16(engine.Port())).String(),
				Probe: engine.Probe(),
			},
		}

		var found []Finding
		for range tries {
			if found = (callChecks{e}).unreachable(t.Context(), []netip.Addr{here}); len(found) == len(tt.want) {
				break
			}
		}

		if len(found) != len(tt.want) {
			t.Errorf("%s: doctor finds %+v, want %v", tt.name, found, tt.want)
			continue
		}

		for i, by := range tt.want {
			wantVerdict(t, tt.name, found[i], Warned)
			if !strings.HasSuffix(found[i].Found.String(), "does not answer at 127.0.0.1 by "+by) {
				t.Errorf("%s: doctor prints %q, want %s", tt.name, found[i].Found, by)
			}
		}
	}
}

// TestTestCall shows that doctor hears its own audio in a call to a running server. It also shows
// that doctor reports a server that does not answer the call.
func TestTestCall(t *testing.T) {
	engine, err := media.New(media.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(engine.Port()))

	e := &Examination{running: datadir.Running{Probe: engine.Probe()}}
	call := callChecks{e}.testCall(t.Context(), at)
	for range tries {
		if call.Status != Fine {
			call = callChecks{e}.testCall(t.Context(), at)
		}
	}
	wantVerdict(t, "a call", call, Fine)
	e.running.Probe = "of:another"
	wantVerdict(t, "a call to another server", callChecks{e}.testCall(t.Context(), at), Broken)
}
