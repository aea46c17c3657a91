package main

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts what the server does.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	events   *prometheus.CounterVec
	byRoute  sync.Map // requestLabels to prometheus.Observer, which saves the look-up by strings
}

type requestLabels struct {
	route  string
	status int
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "selvage_http_request_duration_seconds",
			Help:    "Time from the first byte of a request's header to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "status"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "selvage_identity_events_total",
			Help: "Logins, refused logins, authorization codes, and tokens by grant.",
		}, []string{"event"}),
	}
	m.gauge("selvage_build_info", "Always 1; the labels say what was built.", prometheus.Labels{"version": version(), "go": runtime.Version()}, func() float64 { return 1 })
	m.registry.MustRegister(m.requests, m.events, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// request is the web.Observer of all listeners.
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

// watch shows the state of an app, read when it is asked for.
func (m *metrics) watch(a *app) {
	m.registry.MustRegister(a.databases)
	m.gauge("selvage_password_queue", "Passwords that wait to be hashed.", nil, func() float64 { return float64(a.passwords.Waiting()) })
	m.gauge("selvage_revocations_age_seconds", "Time since revocations were read; after 5 seconds tokens are refused.", nil,
		func() float64 { return a.revocations.Age().Seconds() })
}

func (m *metrics) gauge(name, help string, labels prometheus.Labels, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
}

// event counts what the identity provider does.
func (m *metrics) event(name string) { m.events.WithLabelValues(name).Inc() }

// handler serves GET /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
