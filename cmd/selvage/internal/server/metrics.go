package server

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/keys"
)

// metrics holds the metrics of a server.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.HistogramVec
	events    *prometheus.CounterVec
	messages  *prometheus.CounterVec
	webhooks  *prometheus.CounterVec
	logouts   *prometheus.CounterVec
	callbacks *prometheus.CounterVec
	mails     *prometheus.CounterVec
	calls     callMeter
	byRoute   sync.Map // prometheus.Observer by requestLabels; faster than a look-up by label strings
}

// requestLabels are the labels with which a request is counted.
type requestLabels struct {
	route  string
	status int
}

// newMetrics returns metrics with the counters and histograms that do not need an App.
func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "selvage_http_request_duration_seconds",
			Help:    "Time from the first byte of a request header to the end of the response.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "status"}),

		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "selvage_identity_events_total",
			Help: "Logins, rejected logins, authorization codes, and tokens by grant.",
		}, []string{"event"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "selvage_relay_messages_total",
			Help: "Requests over sockets, by method and result: ok or the error code.",
		}, []string{"method", "result"}),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "selvage_webhook_attempts_total",
			Help: "Attempts to deliver to a webhook, by result: delivered, failed, or dead after the last attempt.",
		}, []string{"result"}),
		logouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "selvage_logout_attempts_total",
			Help: "Attempts to notify an OAuth client of a logout, by result: delivered, failed, " +
				"or dead after the last attempt.",
		}, []string{"result"}),
		callbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "selvage_callback_attempts_total",
			Help: "Attempts to report the status of a recording to its callback, by result: delivered, failed, " +
				"or dead after the last attempt.",
		}, []string{"result"}),
		mails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "selvage_mail_attempts_total",
			Help: "Attempts to send an email, by result: sent, failed, dead after the last attempt, " +
				"or dropped without a recipient.",
		}, []string{"result"}),
	}

	m.calls.init(m.registry)
	m.gauge("selvage_build_info", "Always 1; the labels describe the build.",
		prometheus.Labels{"version": version, "go": runtime.Version()}, func() float64 { return 1 })
	m.registry.MustRegister(m.requests, m.events, m.messages, m.webhooks, m.logouts, m.callbacks, m.mails,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// request records a request. It is the web.Observer of the public listeners.
func (m *metrics) request(route string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	labels := requestLabels{route, status}
	o, ok := m.byRoute.Load(labels)
	if !ok {
		o, _ = m.byRoute.LoadOrStore(labels, m.requests.WithLabelValues(route, strconv.Itoa(status)))
	}
	o.(prometheus.Observer).Observe(took.Seconds())
}

// watch adds metrics of an app's state, which is read whenever the metrics are collected.
func (m *metrics) watch(a *App) {
	m.registry.MustRegister(a.databases)
	if a.failover != nil {
		m.registry.MustRegister(redisSessions{a.redis, a.failover})
	}

	m.gauge("selvage_password_queue", "Passwords waiting to be hashed.", nil, func() float64 {
		return float64(a.passwords.Waiting())
	})

	m.gauge("selvage_revocations_age_seconds",
		"Time since revocations were read; after 5 seconds, tokens are rejected.", nil,
		func() float64 { return a.revocations.Age().Seconds() })
	m.watchRing(a.Ring)
	m.watchRelay(a.relay)
	m.watchChat(a.Chat)
	m.watchCalls(a.Calls, a.engine)
	m.watchSIP(a.sip)
	m.watchBus(a.bus)
	m.watchSpools(a.spools)
	m.watchDeliverer("webhook", "Deliveries", a.webhooks)
	m.watchDeliverer("logout", "Logouts", a.logouts)
	m.watchDeliverer("callback", "Status callbacks of recordings", a.callbacks)
	m.watchMail(a.Post)
}

// watchRing adds the age of the key ring and of its keys.
func (m *metrics) watchRing(r *keys.Ring) {
	m.gauge("selvage_ring_age_seconds",
		"Time since the key ring was read; its keys stay in use until the next read.", nil,
		func() float64 { return time.Since(r.Status().Synced).Seconds() })
	for _, use := range keys.Uses() {
		m.gauge("selvage_ring_key_age_seconds", "Time since the current key took over signing or encrypting.",
			prometheus.Labels{"use": string(use)},
			func() float64 { return time.Since(r.Status().Since[use]).Seconds() })
	}
}

// watchRelay adds the number of open sockets.
func (m *metrics) watchRelay(r *relay.Relay) {
	if r == nil {
		return
	}
	const help = "Open sockets, by whether they have authenticated."
	m.gauge("selvage_relay_sockets", help, prometheus.Labels{"state": "authenticated"}, func() float64 {
		return float64(r.Stats().Connected)
	})
	m.gauge("selvage_relay_sockets", help, prometheus.Labels{"state": "new"}, func() float64 {
		s := r.Stats()
		return float64(s.Sockets - s.Connected)
	})
	m.gauge("selvage_relay_online", "Sockets that keep a subscriber online.", nil, func() float64 {
		return float64(r.Stats().Online)
	})
}

// watchChat adds the number of messages between people.
func (m *metrics) watchChat(c *chat.Chat) {
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "selvage_messages_total",
			Help: "Messages that subscribers and guests have sent to this node.",
		}, func() float64 { return float64(c.Stats().Sent) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "selvage_messages_late_total",
			Help: "Messages that did not reach the sockets of this node in time. The next one of the same " +
				"conversation delivers them.",
		}, func() float64 { return float64(c.Stats().Dropped) }))
}

// watchDeliverer adds the length and the age of a deliverer's queue.
func (m *metrics) watchDeliverer(name, what string, d *deliver.Deliverer) {
	m.gauge("selvage_"+name+"_queue", what+" waiting on all nodes, at most a minute old.", nil,
		func() float64 {
			waiting, _ := d.Backlog()
			return float64(waiting)
		})
	m.gauge("selvage_"+name+"_queue_age_seconds",
		"Time that the oldest of the "+strings.ToLower(what)+" has waited.", nil,
		func() float64 {
			_, age := d.Backlog()
			return age.Seconds()
		})
}

// watchMail adds the numbers of pending and of undeliverable emails, and the age of the oldest pending
// email.
func (m *metrics) watchMail(p *mail.Post) {
	m.gauge("selvage_mail_queue", "Emails waiting on all nodes, at most 15 seconds old.",
		nil, func() float64 { return float64(p.Backlog().Waiting) })
	m.gauge("selvage_mail_dead", "Emails that were given up, kept for `selvage mail retry`.", nil,
		func() float64 { return float64(p.Backlog().Dead) })
	m.gauge("selvage_mail_queue_age_seconds", "Time that the oldest email has waited.", nil, func() float64 {
		oldest := p.Backlog().Oldest
		if oldest.IsZero() {
			return 0
		}
		return max(0, time.Since(oldest).Seconds())
	})
}

// watchCertificates adds the time at which the first HTTPS certificate expires.
func (m *metrics) watchCertificates(c certificates) {
	m.gauge("selvage_certificate_end_timestamp_seconds",
		"When the first certificate of HTTPS expires, in seconds since 1970; 0 while one is missing.", nil,
		func() float64 {
			end := c.Ends()
			if end.IsZero() {
				return 0
			}
			return float64(end.Unix())
		})
}

// gauge adds a metric. read returns its value, and is called whenever metrics are collected.
func (m *metrics) gauge(name, help string, labels prometheus.Labels, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
}

// event counts an event of the identity provider.
func (m *metrics) event(name string) { m.events.WithLabelValues(name).Inc() }

// webhook counts an attempt to deliver to a webhook.
func (m *metrics) webhook(result string) { m.webhooks.WithLabelValues(result).Inc() }

// callback counts an attempt to report the status of a recording.
func (m *metrics) callback(result string) { m.callbacks.WithLabelValues(result).Inc() }

// logout counts an attempt to notify a client of a logout.
func (m *metrics) logout(result string) { m.logouts.WithLabelValues(result).Inc() }

// mail counts an attempt to send an email.
func (m *metrics) mail(result string) { m.mails.WithLabelValues(result).Inc() }

// message counts a request to the relay.
func (m *metrics) message(method, result string) {
	m.messages.WithLabelValues(method, result).Inc()
}

// handler serves GET /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
