package doctor

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// tries is how often a test repeats a check that does not pass, because a busy machine may answer too
// late.
const tries = 3

// TestMediaUnreachable shows that doctor names the transports by which a running server does not
// answer.
func TestMediaUnreachable(t *testing.T) {
	here := netip.MustParseAddr("127.0.0.1")
	tests := []struct {
		name   string
		config media.Config
		want   []string // transports in the findings
	}{
		{name: "open"},
		{name: "without UDP", config: media.Config{NoUDP: true}, want: []string{"UDP"}},
		{name: "without TCP", config: media.Config{NoTCP: true}, want: []string{"TCP"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
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
				found = callChecks{e}.unreachable(t.Context(), []netip.Addr{here})
				if len(found) == len(tt.want) {
					break
				}
			}
			if len(found) != len(tt.want) {
				t.Fatalf("doctor found %+v, want a finding for each of %v", found, tt.want)
			}

			for i, transport := range tt.want {
				wantVerdict(t, transport, found[i], Warned)
				wantText := "does not answer at 127.0.0.1 by " + transport
				if got := found[i].Found.String(); !strings.HasSuffix(got, wantText) {
					t.Errorf("doctor found %q, want %q at the end", got, wantText)
				}
			}
		})
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
	address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(engine.Port()))

	e := &Examination{running: datadir.Running{Probe: engine.Probe()}}
	call := callChecks{e}.testCall(t.Context(), address)
	for range tries {
		if call.Status != Fine {
			call = callChecks{e}.testCall(t.Context(), address)
		}
	}
	wantVerdict(t, "a call", call, Fine)

	e.running.Probe = "of:another"
	call = callChecks{e}.testCall(t.Context(), address)
	wantVerdict(t, "a call to a different server", call, Broken)
}
