package dashboard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
)

// A form that makes something is handled once, even if a double click or the back button sends it
// again. The form token differs for each page, so the same token with the same values means that the
// same form was sent again.

const (
	// maxHandling is how long a form is handled after its browser has disconnected. A browser that
	// sends a form twice drops the first request and shows the response to the second.
	maxHandling = 30 * time.Second

	// lostAfter is the age from which a form that is still being handled has lost its node. It is
	// longer than maxHandling and the difference of two nodes' clocks, which may each be wrong by a
	// minute.
	lostAfter = 3 * time.Minute

	// keptFor is how long the response is kept in memory for requests that send the form again. It
	// is short, because the response may show a secret that is stored nowhere else.
	keptFor = 3 * time.Second

	maxKept = 100 // responses on this node
)

// flights are the forms that this node is handling, or has just handled.
type flights struct {
	mu  sync.Mutex
	all map[string]*flight
}

// A flight is a form that is being handled, or has just been handled. Requests that send it again
// wait for its response.
type flight struct {
	done     chan struct{}
	response recorder  // complete once done is closed
	until    time.Time // when the response is dropped; zero while the form is being handled
}

// join returns the flight of the form with this id. If isFirst is true, the caller must handle the
// form, and then call leave.
func (a *flights) join(id string, w http.ResponseWriter, now time.Time) (f *flight, isFirst bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f = a.all[id]; f != nil && (f.until.IsZero() || now.Before(f.until)) {
		return f, false
	}
	f = &flight{done: make(chan struct{}), response: recorder{ResponseWriter: w}}
	a.all[id] = f
	return f, true
}

// leave ends the handling of a form. It keeps the response of a form that succeeded.
func (a *flights) leave(id string, f *flight, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(f.done)
	if !f.response.succeeded() || len(a.all) > maxKept {
		delete(a.all, id)
		return
	}
	f.until = now.Add(keptFor)
	time.AfterFunc(keptFor, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.all[id] == f {
			delete(a.all, id)
		}
	})
}

// submissionID identifies a form by its path, its token and its values. For an upload, it includes
// the name of the file and the length of the request instead of the file.
func (v *visit) submissionID() string {
	id := v.r.URL.Path + "\n" + v.form.Encode()
	if v.file != nil {
		id += "\n" + v.file.FileName() + "\n" + strconv.FormatInt(v.r.ContentLength, 10)
	}
	return id
}

// serve runs the handler of a route. A form that makes something is handled once. If it is sent
// again within keptFor, the second request gets a copy of the response. After that, the response
// says that the form was sent before.
func (a *site) serve(v *visit) error {
	if !v.route.once {
		return v.route.serve(v)
	}
	id := v.submissionID()
	for {
		f, isFirst := a.flights.join(id, v.w, a.Now())
		if isFirst {
			return a.serveOnce(v, id, f)
		}

		select {
		case <-f.done:
		case <-v.r.Context().Done():
			return v.r.Context().Err()
		}
		if f.response.succeeded() {
			v.dropUpload()
			f.response.replay(v.w)
			return nil
		}
	}
}

// serveOnce handles a form, unless it was handled before.
func (a *site) serveOnce(v *visit, id string, f *flight) error {
	defer func() { a.flights.leave(id, f, a.Now()) }()
	sent, err := a.Operators.BeginForm(v.r.Context(), id)
	if errors.Is(err, problem.Conflict) {
		v.dropUpload()
		return a.page(v, http.StatusConflict, "Already sent", "sent", sentPage{
			SentForm: sent,
			Lost:     !sent.Began.IsZero() && v.file == nil && v.now.Sub(sent.Began) > lostAfter,
			Form:     ownPath(refererPath(v.r)),
		})
	}
	if err != nil {
		return err
	}

	// The changes of the handler and its outcome are stored even if the browser disconnects. A
	// file can only be read while the browser sends it.
	lasting := context.WithoutCancel(v.r.Context())
	defer func() { a.settle(v, lasting, id, &f.response) }()
	if v.file == nil {
		ctx, cancel := context.WithTimeout(lasting, maxHandling)
		defer cancel()
		v.r = v.r.WithContext(ctx)
	}

	v.w = &f.response
	if err := v.route.serve(v); err != nil {
		a.fail(v, err)
	}
	return nil
}

// halfDone returns the faults to show if the second step of a form failed after the first one was done.
// text says what is missing. The response must be a success, so that the form cannot do the first step
// again.
func (a *site) halfDone(v *visit, text string, err error) faults {
	all := faults{{Text: text}}
	for _, p := range problem.All(err) {
		all = append(all, fault{Text: sentence(p.Message)})
	}
	if len(all) == 1 {
		web.LogInternal(v.r, a.Log, err)
	}
	return all
}

// settle stores the outcome of a form. A form that failed, or only showed a preview, may be sent
// again.
func (a *site) settle(v *visit, ctx context.Context, id string, response *recorder) {
	var err error
	if response.succeeded() && !v.preview {
		err = a.Operators.EndForm(ctx, id, response.Header().Get("Location"))
	} else {
		err = a.Operators.ForgetForm(ctx, id)
	}
	if err != nil {
		web.LogInternal(v.r, a.Log, err)
	}
	response.header = response.Header().Clone()
}

// A sentPage is shown for a form that was handled before, or is being handled on another node.
// Result is the path of the page that shows what the form made; "" if it was shown only once.
type sentPage struct {
	operator.SentForm
	Lost bool   // the node that handled the form has stopped, perhaps before it was done
	Form string // path of the form's page, or ""
}

// dropUpload reads the rest of an upload. Browsers show no response until they have sent the whole
// form.
func (v *visit) dropUpload() {
	if v.file != nil {
		_, _ = io.Copy(io.Discard, v.r.Body) // bounded by MaxBytesReader; the browser may have disconnected
	}
}

// A recorder sends a response and also keeps it.
type recorder struct {
	http.ResponseWriter
	status int
	header http.Header // set when the response is complete
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write keeps p even if the browser has disconnected.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_, _ = r.ResponseWriter.Write(p) // a request that sends the form again may still get p
	return r.body.Write(p)
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// succeeded reports whether the handler has responded without an error.
func (r *recorder) succeeded() bool { return r.status != 0 && r.status < http.StatusBadRequest }

// replay sends the response again. Headers that w already has belong to the new request.
func (r *recorder) replay(w http.ResponseWriter) {
	for name, values := range r.header {
		if w.Header()[name] == nil {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // the browser may have disconnected
}
