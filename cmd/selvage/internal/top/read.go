package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A reading is the metrics and the state of a node at one moment. The zero reading stands for a
// node that has not been read yet.
type reading struct {
	at       time.Time
	samples  samples
	state    string
	version  string
	problems map[string]string
	err      error
}

// samples are the metrics of a node, each with its labels.
type samples map[model.Fingerprint]*model.Sample

// maxBody is the maximum number of bytes read from a response. The metrics of a busy node are about
// a tenth of this size.
const maxBody = 16 << 20

// read reads the metrics and the state of a node.
func (w *Watcher) read(ctx context.Context, base string) reading {
	r := reading{at: time.Now(), state: Unreachable}
	readMetrics := func(body io.Reader) (err error) {
		r.samples, err = parse(body)
		return err
	}
	r.err = w.get(ctx, base+"/metrics", readMetrics, http.StatusOK)
	if r.err != nil {
		return r
	}

	var ready struct {
		Status  string            `json:"status"`
		Version string            `json:"version"`
		Checks  map[string]string `json:"checks"`
	}
	readState := func(body io.Reader) error { return json.NewDecoder(body).Decode(&ready) }
	r.err = w.get(ctx, base+"/readyz", readState, http.StatusOK, http.StatusServiceUnavailable)
	if r.err != nil {
		return r
	}

	r.state = ready.Status
	r.version = ready.Version
	r.problems = make(map[string]string)
	for name, result := range ready.Checks {
		if result != "ok" {
			r.problems[name] = result
		}
	}
	return r
}

// get requests a URL. If the response has one of the statuses, get passes its body to use.
func (w *Watcher) get(ctx context.Context, url string, use func(io.Reader) error, statuses ...int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	if !slices.Contains(statuses, resp.StatusCode) {
		const maxReason = 200
		why, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason)) // the body may contain an explanation
		return fmt.Errorf("%s returned status %d: %s", url, resp.StatusCode, strings.TrimSpace(string(why)))
	}
	if err := use(io.LimitReader(resp.Body, maxBody)); err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	return nil
}

// parse reads metrics in the text format of Prometheus.
func parse(body io.Reader) (samples, error) {
	d := expfmt.SampleDecoder{
		Dec:  expfmt.NewDecoder(body, expfmt.NewFormat(expfmt.TypeTextPlain)),
		Opts: &expfmt.DecodeOptions{Timestamp: model.Now()},
	}
	all := make(samples)
	for {
		var family model.Vector
		err := d.Decode(&family)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for _, s := range family {
			all[s.Metric.Fingerprint()] = s
		}
	}
}

// A filter reports whether a sum includes the metric with these labels.
type filter func(labels model.Metric) bool

// sum returns the sum of the metrics with this name that the filter accepts; a nil filter accepts all. ok
// is false if the node has no metric with this name.
func (s samples) sum(name string, accept filter) (total float64, ok bool) {
	for _, sample := range s {
		if string(sample.Metric[model.MetricNameLabel]) != name {
			continue
		}
		ok = true
		if accept == nil || accept(sample.Metric) {
			total += float64(sample.Value)
		}
	}
	return total, ok
}

// add adds the values of other samples to s.
func (s samples) add(other samples) {
	for key, theirs := range other {
		if ours, ok := s[key]; ok {
			s[key] = &model.Sample{Metric: ours.Metric, Value: ours.Value + theirs.Value}
		} else {
			s[key] = theirs
		}
	}
}
