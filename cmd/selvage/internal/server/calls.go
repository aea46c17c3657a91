package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"syscall"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/record"
	"github.com/selvage/selvage/calls/rtpengine"
	"github.com/selvage/selvage/calls/script"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// openCalls opens the media port and sets up calls, unless calls are off.
func (a *App) openCalls(ctx context.Context, meter *callMeter, log *slog.Logger) error {
	address := a.Config.MediaListener()
	if address == config.Off || a.relay == nil {
		if a.Config.ListenSIP != config.Off || a.Config.ListenSIPS != config.Off {
			return errors.New(
				"--listen-sip and --listen-sips need calls, which --listen-media or --services turns off")
		}
		return nil
	}

	engine, err := a.openEngine(ctx, address, log)
	if err != nil {
		return err
	}
	a.engine = engine
	a.opened = append(a.opened, engine)
	conf := calls.Config{
		Fabric:   a.Fabric,
		Engine:   engine,
		Clients:  a.relay,
		Store:    a.Store,
		Rooms:    a.Store,
		Sessions: a.sessions,
		Node:     a.node,
		Log:      log,
		Meter:    meter,
		Limits: calls.Limits{
			Ring:     time.Duration(a.Config.Calls.Ring),
			Outbound: outboundLimits(a.Config),
			Gateway:  gatewayLimits(a.Config),
		},
	}
	if err := a.openRTPEngine(&conf); err != nil {
		return err
	}
	if !a.bus.Alone() {
		conf.Nodes = a.bus
		advertised, _ := engine.UDP()
		a.mediaNodes = newMediaNodes(a.bus, advertised)
		a.mediaNodes.announce()
	}

	if err := a.openSIP(ctx, &conf); err != nil {
		return err
	}
	if err := a.openScripts(&conf, meter.script); err != nil {
		return err
	}
	if a.Recordings != nil {
		dir := filepath.Join(a.Config.Data, "spool")
		a.spools, err = record.Open(record.Config{Dir: dir, Recordings: a.Recordings, Log: log})
		if err != nil {
			return err
		}
		conf.Recorder = a.spools
		conf.IsRecorded = a.isRecorded
		conf.RecordTone = time.Duration(a.Config.Calls.RecordTone)
	}

	a.Calls = calls.New(conf)
	a.relay.Carry(a.Calls)
	if a.sip != nil {
		a.sip.Carry(a.Calls)
	}
	return nil
}

// openEngine opens the media port. If listen_media is auto and another program uses the port, it opens a
// free port.
func (a *App) openEngine(ctx context.Context, address config.HostPort, log *slog.Logger) (*media.Engine, error) {
	known, _, err := a.Config.MediaAddresses(ctx, a.Where.Public)
	if err != nil {
		return nil, err
	}
	advertise := make([]netip.AddrPort, len(known))
	for i, ip := range known {
		advertise[i] = netip.AddrPortFrom(ip, 0)
	}

	c := media.Config{Listen: string(address), Advertise: advertise, Log: log}
	c.Ports.First, c.Ports.Last = a.Config.PhonePorts.Bounds()
	engine, err := media.New(c)
	if err == nil {
		return engine, nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) || a.Config.ListenMedia != config.Auto {
		return nil, listenError(err, address, "--listen-media")
	}

	host, _, _ := net.SplitHostPort(c.Listen)
	c.Listen = net.JoinHostPort(host, "0")
	engine, err = media.New(c)
	if err != nil {
		return nil, listenError(err, address, "--listen-media")
	}
	log.Warn("another program uses the media port; using a free one",
		"wanted", string(address), "media", engine.Port())
	return engine, nil
}

// openRTPEngine sets up the configured rtpengines to carry calls between two parties. It does
// nothing if no rtpengine is configured.
func (a *App) openRTPEngine(c *calls.Config) (err error) {
	addresses := a.Config.Calls.RTPEngine
	if len(addresses) == 0 {
		return nil
	}
	a.rtpengines, err = rtpengine.New(rtpengine.Config{Addresses: addresses, Rooms: c.Engine, Log: c.Log})
	if err != nil {
		return err
	}
	a.opened = append(a.opened, a.rtpengines)
	c.Engine = a.rtpengines
	return nil
}

// openScripts makes the configured webhook decide about calls to scripts. It calls answered after
// each request to the webhook.
func (a *App) openScripts(c *calls.Config, answered func(took time.Duration, err error)) error {
	s := a.Config.Calls.Scripts
	if s.URL == "" {
		return nil
	}
	hook, err := script.New(script.Config{
		URL:      string(s.URL),
		Secret:   s.Secret,
		Egress:   a.egress,
		Answered: answered,
		Trace:    func(c *http.Client) *http.Client { return a.tracer.Client("script", c) },
	})
	if err != nil {
		return err
	}
	c.Scripts = hook
	return nil
}

// joinNodes connects this server with the other nodes, and delivers messages to its sockets. After each
// request that another node has answered, it calls answered with the time that the request took.
func (a *App) joinNodes(answered func(took time.Duration), log *slog.Logger) {
	a.bus = a.openBus(answered, log)
	if a.relay == nil {
		a.Chat.AnnounceTo(a.bus)
		return
	}
	a.Chat.DeliverTo(a.relay, a.bus)
}

// openBus returns the bus to the other nodes. It uses Redis or, if Redis is not configured or is
// unavailable, the database.
func (a *App) openBus(answered func(took time.Duration), log *slog.Logger) *bus.Bus {
	const purpose = "messages between nodes"
	c := bus.Config{
		Node:     a.node,
		Secret:   a.Ring.DeriveFirst(purpose),
		Secrets:  func() [][sha256.Size]byte { return a.Ring.DeriveTrusted(purpose) },
		Log:      log,
		Answered: answered,
	}
	if a.redis != nil {
		c.Transports = append(c.Transports, a.redis.Channel())
	}
	if a.Config.Database.Shared() {
		notifier := database.NewNotifier(database.Config{URL: string(a.Config.Database)})
		a.opened = append(a.opened, notifier)
		c.Transports = append(c.Transports, notifier)
	}
	return bus.New(c)
}

// isRecorded reports whether to record a call from its beginning.
func (a *App) isRecorded(ctx context.Context, r calls.Record) (bool, error) {
	return a.Fabric.RecordsCall(ctx, r.ProjectID, r.Subscribers()...)
}

// recordedCalls implements [recordings.Calls] for package recordings.
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

	d := recordings.Description{
		Metadata:    recordings.Metadata{From: r.From.Address, To: r.To.Address, Direction: "inbound"},
		Subscribers: r.Subscribers(),
	}
	if r.RoomSession != "" {
		d.Track = "inbound" // the audio from the member; the room has a recording of everyone
		d.Channels = 1
	}
	return d, nil
}

// FindConference implements [recordings.Calls]. A conference is a room session.
func (a recordedCalls) FindConference(ctx context.Context, projectID, id string) (recordings.Description, error) {
	s, err := a.RoomSessions.Find(ctx, projectID, id)
	if err != nil {
		return recordings.Description{}, err
	}
	if !s.Ended.IsZero() {
		return recordings.Description{}, problem.NoSuch("room session")
	}
	return recordings.Description{Metadata: recordings.Metadata{To: s.Address, Track: "both"}, Channels: 1}, nil
}

// Record implements [recordings.Calls].
func (a recordedCalls) Record(ctx context.Context, rec recordings.Recording) error {
	switch {
	case rec.ConferenceSid != "" && a.Calls == nil:
		return a.RoomSessions.Record(ctx, rec.ProjectID, rec.ConferenceSid)
	case rec.ConferenceSid != "":
		return a.Calls.RecordRoom(ctx, rec.ProjectID, rec.ConferenceSid)
	case a.Calls == nil:
		return a.CallRecords.Record(ctx, rec.ProjectID, rec.CallSid)
	}
	return a.Calls.Record(ctx, rec.ProjectID, rec.CallSid)
}

// mover returns the function that moves calls, or nil if this server carries no calls.
func (a *App) mover() func(ctx context.Context, projectID, id, address string) error {
	if a.Calls == nil {
		return nil
	}
	return a.Calls.Move
}
