package server

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/record"
	"github.com/selvage/selvage/calls/sip"
	"github.com/selvage/selvage/calls/turn"
	"github.com/selvage/selvage/internal/bus"
)

// A callMeter measures calls and the requests between nodes.
type callMeter struct {
	setup     prometheus.Histogram
	jitter    prometheus.Histogram
	roundTrip prometheus.Histogram
	ended     *prometheus.CounterVec
	requests  prometheus.Histogram // duration of requests between nodes
	scripts   *prometheus.HistogramVec
}

var _ calls.Meter = (*callMeter)(nil)

// init creates and registers the metrics.
func (m *callMeter) init(r *prometheus.Registry) {
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		r.MustRegister(h)
		return h
	}

	m.setup = histogram("selvage_call_setup_seconds",
		"Time from the first description of a client until media can flow to and from it.",
		.05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 10, 20)
	m.jitter = histogram("selvage_call_jitter_seconds", "Jitter of the caller's audio at the end of each call.",
		.001, .002, .005, .01, .02, .03, .05, .1, .2, .5)
	m.roundTrip = histogram("selvage_call_round_trip_seconds",
		"Round-trip time between server and caller at the end of each call.",
		.002, .005, .01, .02, .05, .1, .15, .2, .3, .5, 1)
	m.requests = histogram("selvage_bus_request_seconds", "Time until another node has answered a request.",
		.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5)

	m.ended = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "selvage_calls_ended_total",
		Help: "Calls that have ended, by cause.",
	}, []string{"cause"})
	m.scripts = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "selvage_script_request_seconds",
		Help:    "Time until the webhook for scripts has answered, by result: ok or failed.",
		Buckets: []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
	}, []string{"result"})
	r.MustRegister(m.ended, m.scripts)
}

// Connected implements [calls.Meter].
func (m *callMeter) Connected(took time.Duration) { m.setup.Observe(took.Seconds()) }

// Ended implements [calls.Meter].
func (m *callMeter) Ended(r calls.Record) {
	m.ended.WithLabelValues(r.Cause.Text).Inc()
	if r.Received > 0 {
		m.jitter.Observe(r.Jitter.Seconds())
	}
	if r.RoundTrip > 0 {
		m.roundTrip.Observe(r.RoundTrip.Seconds())
	}
}

// answered records a request that another node has answered.
func (m *callMeter) answered(took time.Duration) { m.requests.Observe(took.Seconds()) }

// script records a request to the webhook for scripts.
func (m *callMeter) script(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.scripts.WithLabelValues(result).Observe(took.Seconds())
}

// watchCalls adds metrics of the calls on this node and of the traffic of the media engine.
func (m *metrics) watchCalls(c *calls.Calls, e *media.Engine) {
	if c == nil {
		return
	}
	for _, state := range []calls.State{calls.Created, calls.Ringing, calls.InCall} {
		m.gauge("selvage_calls", "Calls of this node, by state.", prometheus.Labels{"state": string(state)},
			func() float64 { return float64(c.Stats().ByState[state]) })
	}

	const legs = "Clients in a call of this node, ringing ones included, by kind: browser or phone."
	m.gauge("selvage_call_legs", legs, prometheus.Labels{"kind": "browser"},
		func() float64 {
			s := c.Stats()
			return float64(s.Legs - s.Phones)
		})
	m.gauge("selvage_call_legs", legs, prometheus.Labels{"kind": "phone"},
		func() float64 { return float64(c.Stats().Phones) })
	m.gauge("selvage_rooms", "Open conference rooms of this node.", nil,
		func() float64 { return float64(c.Stats().Rooms) })
	m.gauge("selvage_call_legs_elsewhere", "Clients of this node in a call of another node.", nil,
		func() float64 { return float64(c.Stats().Elsewhere) })

	m.gauge("selvage_media_sections", "Media sections of the clients in calls of this node, connected or not.", nil,
		func() float64 { return float64(e.Stats().Sections) })

	total := func(name, help string, labels prometheus.Labels, read func(media.Stats) uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
			func() float64 { return float64(read(e.Stats())) }))
	}

	packets := func(kind string, read func(media.Stats) uint64) {
		const help = "Packets of calls: received, sent, dropped as invalid, not sent because the path was " +
			"full or dead, or lost on their way here, which is counted when a client leaves."
		total("selvage_media_packets_total", help, prometheus.Labels{"kind": kind}, read)
	}
	packets("received", func(s media.Stats) uint64 { return s.Received })
	packets("sent", func(s media.Stats) uint64 { return s.Sent })
	packets("dropped", func(s media.Stats) uint64 { return s.Dropped })
	packets("unsent", func(s media.Stats) uint64 { return s.Unsent })
	packets("lost", func(s media.Stats) uint64 { return s.Lost })

	connected := func(transport string, read func(media.Stats) uint64) {
		const help = "Media sections that connected, by transport."
		total("selvage_media_connected_total", help, prometheus.Labels{"transport": transport}, read)
	}
	connected("udp", func(s media.Stats) uint64 { return s.ConnectedUDP })
	connected("tcp", func(s media.Stats) uint64 { return s.ConnectedTCP })

	total("selvage_media_unconnected_total", "Media sections that ended unconnected after at least 5 seconds.",
		nil, func(s media.Stats) uint64 { return s.Unconnected })
	total("selvage_media_handshake_failures_total", "Media sections whose encryption could not be agreed on.", nil,
		func(s media.Stats) uint64 { return s.HandshakeFailures })
	total("selvage_media_consent_lost_total",
		"Addresses of clients to which media is no longer sent, because nobody there answers checks.", nil,
		func(s media.Stats) uint64 { return s.ConsentLost })
	total("selvage_media_late_frames_total",
		"Frames of 20 ms that rooms skipped because the machine was too slow.", nil,
		func(s media.Stats) uint64 { return s.LateFrames })
	total("selvage_media_panics_total", "Faults of the server in the media of calls. Each ended at most one call.", nil,
		func(s media.Stats) uint64 { return s.Panics })
}

// watchSIP adds metrics of what phones and SIP gateways do.
func (m *metrics) watchSIP(s *sip.Server) {
	if s == nil {
		return
	}
	m.gauge("selvage_sip_dialogs", "Calls of phones whose SIP is on this node, ringing ones included.", nil,
		func() float64 { return float64(s.Stats().Dialogs) })
	m.gauge("selvage_sip_gateways", "SIP gateways at which this node is registered.", nil,
		func() float64 { return float64(s.Stats().Gateways) })
	m.gauge("selvage_sip_connections", "TCP connections of phones.", nil,
		func() float64 { return float64(s.Stats().Streams) })

	total := func(name, help, kind string, read func(sip.Stats) uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"kind": kind}},
			func() float64 { return float64(read(s.Stats())) }))
	}

	messages := func(kind string, read func(sip.Stats) uint64) {
		const help = "SIP messages: received, and those dropped because they were malformed, because there were too " +
			"many, or because their sender had too many wrong credentials."
		total("selvage_sip_messages_total", help, kind, read)
	}
	messages("received", func(s sip.Stats) uint64 { return s.Received })
	messages("malformed", func(s sip.Stats) uint64 { return s.Malformed })
	messages("limited", func(s sip.Stats) uint64 { return s.Limited })
	messages("blocked", func(s sip.Stats) uint64 { return s.Blocked })

	requests := func(kind string, read func(sip.Stats) uint64) {
		const help = "Requests of phones: registrations, calls, invitations to ring, and wrong credentials."
		total("selvage_sip_requests_total", help, kind, read)
	}
	requests("register", func(s sip.Stats) uint64 { return s.Registered })
	requests("call", func(s sip.Stats) uint64 { return s.Inbound })
	requests("ring", func(s sip.Stats) uint64 { return s.Outbound })
	requests("denied", func(s sip.Stats) uint64 { return s.Denied })

	responses := func(direction string, class int, read func(sip.Stats) [7]uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "selvage_sip_responses_total",
			Help:        "SIP responses to and from phones, by class of their status.",
			ConstLabels: prometheus.Labels{"direction": direction, "class": fmt.Sprintf("%dxx", class)},
		}, func() float64 { return float64(read(s.Stats())[class]) }))
	}
	const lastClass = 6 // 6xx
	for class := 1; class <= lastClass; class++ {
		responses("sent", class, func(s sip.Stats) [7]uint64 { return s.Sent })
		responses("received", class, func(s sip.Stats) [7]uint64 { return s.Answered })
	}
}

// watchBus adds the numbers of messages between nodes.
func (m *metrics) watchBus(b *bus.Bus) {
	for kind, read := range map[string]func() uint64{"sent": b.Sent, "received": b.Received} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "selvage_bus_messages_total",
			ConstLabels: prometheus.Labels{"kind": kind},
			Help:        "Messages to and from other nodes.",
		}, func() float64 { return float64(read()) }))
	}
	for kind, read := range map[string]func() uint64{"unsent": b.Dropped, "refused": b.Refused} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "selvage_bus_messages_lost_total",
			ConstLabels: prometheus.Labels{"kind": kind},
			Help: "Messages between nodes that could not be sent, or that were refused because no node " +
				"sent them or they arrived late or twice.",
		}, func() float64 { return float64(read()) }))
	}
}

// watchTURN adds the number of addresses that clients of the TURN server hold.
func (m *metrics) watchTURN(s *turn.Server) {
	m.gauge("selvage_turn_allocations", "Addresses of the TURN server that clients hold.", nil,
		func() float64 { return float64(s.Allocations()) })
}

// watchSpools adds the number of calls that are being recorded.
func (m *metrics) watchSpools(s *record.Spools) {
	if s == nil {
		return
	}
	m.gauge("selvage_call_recordings", "Recordings of calls under way on this node.", nil,
		func() float64 { return float64(s.Stats().Recordings) })
	m.gauge("selvage_call_recording_lag_seconds",
		"Age of the oldest audio of recordings that is not on disk; about a second while the disk works.", nil,
		func() float64 { return s.Stats().Lag.Seconds() })
	total := func(name, help string, read func(record.Stats) uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(read(s.Stats())) }))
	}

	total("selvage_call_recording_bytes_total", "Bytes of recorded calls written to the spool.",
		func(s record.Stats) uint64 { return s.Bytes })
	total("selvage_call_recording_lost_packets_total",
		"Packets left out of recordings, because the disk was full or slow.",
		func(s record.Stats) uint64 { return s.Lost })
}
