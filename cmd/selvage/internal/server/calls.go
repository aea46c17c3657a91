package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/record"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// openCalls opens the media port and builds the calls, unless the configuration says that this
// node carries none. With listen_media auto, an occupied port gives way to a free one.
func (a *App) openCalls(ctx context.Context, log *slog.Logger) error {
	address := a.Config.MediaListener()
	if address == config.Off || a.relay == nil {
		return nil
	}
	advertise, err := a.mediaAddresses(ctx)
	if err != nil {
		return err
	}

	c := media.Config{Listen: string(address), Advertise: advertise, Log: log}
	engine, err := media.New(c)
	if errors.Is(err, syscall.EADDRINUSE) && a.Config.ListenMedia == config.Auto {
		host, _, _ := net.SplitHostPort(c.Listen)
		c.Listen = net.JoinHostPort(host, "0")
		if engine, err = media.New(c); err == nil {
			log.Warn("another program uses the media port; using a free one", "wanted", string(address),
				"media", engine.Port())
		}
	}
	if err != nil {
		return listenError(err, address, "--listen-media")
	}

	a.engine = engine
	a.opened = append(a.opened, engine)
	conf := calls.Config{
		Fabric: a.Fabric, Engine: engine, Clients: a.relay, Store: a.Store,
		Sessions: a.sessions, Node: a.node, Log: log,
	}
	if a.bus = a.openBus(log); !a.bus.Alone() {
		conf.Nodes = nodes{a.bus}
	}
	if a.Recordings != nil {
		dir := filepath.Join(a.Config.Data, "spool")
		if a.spools, err = record.Open(record.Config{Dir: dir, Recordings: a.Recordings, Log: log}); err != nil {
			return err
		}
		conf.Recorder, conf.IsRecorded = a.spools, a.isRecorded
	}
	a.Calls = calls.New(conf)
	a.relay.Carry(a.Calls)
	return nil
}

// openBus returns the bus to the other nodes: through Redis, or the database if there is none or
// it is away.
func (a *App) openBus(log *slog.Logger) *bus.Bus {
	c := bus.Config{Node: a.node, Log: log}
	if a.redis != nil {
		c.Transports = append(c.Transports, a.redis.Channel())
	}
	if a.Config.Database.Shared() {
		n := database.NewNotifier(database.Config{URL: string(a.Config.Database)})
		a.opened = append(a.opened, n)
		c.Transports = append(c.Transports, n)
	}
	return bus.New(c)
}

// nodes is a bus as package calls wants it.
type nodes struct{ *bus.Bus }

func (n nodes) Handle(kind string, h func(context.Context, string, json.RawMessage) (any, error)) {
	n.Bus.Handle(kind, h)
}

// isRecorded reports whether a call is to be recorded from its beginning.
func (a *App) isRecorded(ctx context.Context, r calls.Record) (bool, error) {
	return a.Fabric.RecordsCall(ctx, r.ProjectID, r.Subscribers()...)
}

// recordedCalls lets package recordings record the calls of this deployment.
type recordedCalls struct{ *App }

// FindCall implements [recordings.Calls].
func (a recordedCalls) FindCall(ctx context.Context, projectID, id string) (recordings.Description, error) {
	r, err := a.CallRecords.Find(ctx, projectID, "", id)
	if err != nil {
		return recordings.Description{}, err
	}
	if r.State != calls.InCall {
		return recordings.Description{}, problem.NoSuch("call")
	}
	return recordings.Description{
		Metadata:    recordings.Metadata{From: r.From.Address, To: r.To.Address, Direction: "inbound"},
		Subscribers: r.Subscribers(),
	}, nil
}

// Record implements [recordings.Calls].
func (a recordedCalls) Record(ctx context.Context, rec recordings.Recording) error {
	if a.Calls == nil {
		return a.CallRecords.Record(ctx, rec.ProjectID, rec.CallSid)
	}
	return a.Calls.Record(ctx, rec.ProjectID, rec.CallSid)
}

// lookUpHost bounds how long a start waits for the public URL's host to be looked up.
const lookUpHost = 2 * time.Second

// mediaAddresses returns the addresses that browsers receive: the configured ones, else those
// of the public URL's host that this machine has. None lets the engine choose.
func (a *App) mediaAddresses(ctx context.Context) (all []netip.AddrPort, err error) {
	for _, ip := range a.Config.MediaAddress {
		all = append(all, netip.AddrPortFrom(ip, 0))
	}
	host, _, _ := net.SplitHostPort(string(a.Config.MediaListener()))
	if ip, err := netip.ParseAddr(host); len(all) > 0 || err == nil && !ip.IsUnspecified() {
		return all, nil
	}

	u, err := url.Parse(a.Where.Public)
	if err != nil {
		return nil, fmt.Errorf("reading the public URL: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpHost)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, nil // no name service: the engine advertises the addresses of this machine
	}
	for _, ip := range found {
		if ip = ip.Unmap(); hasAddress(ip) {
			all = append(all, netip.AddrPortFrom(ip, 0))
		}
	}
	return all, nil
}

// hasAddress reports whether this machine has an address.
func hasAddress(ip netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip.AsSlice())
	})
}
