package attack

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/selvage/selvage/test/harness"
)

// TestI09Floods floods an HTTP/2 connection with frames that cost the client little. The server
// either closes the connection or processes all frames. It uses at most 256 MiB, and still answers
// other clients.
func TestI09Floods(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	sat := p.NewSAT(t, "ada")
	header := encodeHeader(s)

	for _, flood := range []struct {
		name string
		send func(f *http2.Framer, i uint32) error
	}{
		{"rapid resets", func(f *http2.Framer, i uint32) error {
			request := http2.HeadersFrameParam{
				StreamID:      2*i + 1,
				BlockFragment: header,
				EndStream:     true,
				EndHeaders:    true,
			}
			return errors.Join(f.WriteHeaders(request), f.WriteRSTStream(2*i+1, http2.ErrCodeCancel))
		}},
		{"streams that never end", func(f *http2.Framer, i uint32) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: header, EndHeaders: true})
		}},
		{"continuations", func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header})
			}
			return f.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 8<<10)) // :method, many times
		}},
		{"settings", func(f *http2.Framer, _ uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
		}},
		{"pings", func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{}) }},
		{"empty data", func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header, EndHeaders: true})
			}
			return f.WriteData(1, false, nil)
		}},
		{"priorities", func(f *http2.Framer, i uint32) error {
			return f.WritePriority(2*i+1, http2.PriorityParam{StreamDep: 0, Weight: 1})
		}},
		{"window updates", func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) }},
	} {
		t.Run(flood.name, func(t *testing.T) {
			before := processOf(t, s)
			sent, closed := floodConnection(t, s, flood.send)
			cost := processOf(t, s).since(before)

			p.Get(t, "/api/fabric/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200)
			each := cost.cpu / time.Duration(max(sent, 1))
			t.Logf("%d frames, connection closed: %v, %v of processor time, %v a frame", sent, closed, cost.cpu, each)
			if each > time.Millisecond {
				t.Errorf("a frame cost %v of processor time, want at most 1 ms", each)
			}
			const maxKiB = 256 << 10
			if peak := peakOf(t, s.PID()); peak > maxKiB {
				t.Errorf("the server used %d KiB at its peak, want at most %d", peak, maxKiB)
			}
		})
	}
}

// encodeHeader returns the header of a GET request in HPACK.
func encodeHeader(s *harness.Server) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"},
		{Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: strings.TrimPrefix(s.HTTPS, "https://")},
		{Name: ":path", Value: "/oauth/jwks"},
	} {
		_ = e.WriteField(field) // writing to a buffer cannot fail
	}
	return b.Bytes()
}

// floodConnection sends frames over a new HTTP/2 connection. It stops after a fixed number of
// frames, or when writing fails: because the server closed the connection, or because a few seconds
// passed. It returns how many frames it sent, and whether writing failed.
func floodConnection(
	t *testing.T, s *harness.Server, send func(*http2.Framer, uint32) error,
) (sent int, closed bool) {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.HTTPS, "https://"), &tls.Config{
		InsecureSkipVerify: true,
		ServerName:         "localhost",
		NextProtos:         []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	over := make(chan struct{}) // closed when the last frame has been answered or the connection is closed
	last := [8]byte{'o', 'v', 'e', 'r'}
	go func() {
		defer close(over)
		in := http2.NewFramer(nil, conn)
		for {
			frame, err := in.ReadFrame()
			if err != nil {
				return
			}
			if ping, ok := frame.(*http2.PingFrame); ok && ping.Data == last {
				return
			}
		}
	}()

	const limit, duration = 20_000, 3 * time.Second
	if err := conn.SetWriteDeadline(time.Now().Add(duration)); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(conn)
	f := http2.NewFramer(out, nil)
	if _, err := io.WriteString(out, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}

	for ; sent < limit; sent++ {
		if err := send(f, uint32(sent)); err != nil {
			return sent, true
		}
	}
	if errors.Join(f.WritePing(false, last), out.Flush()) != nil {
		return sent, true
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("the server did not answer within a minute after the flood")
	}
	return sent, false
}
