package laml

import (
	"errors"
	"net/http"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// parseFile splits the last element of a path into the Sid and the extension with its dot.
func parseFile(file string) (sid, ext string) {
	if i := strings.LastIndexByte(file, '.'); i >= 0 {
		return file[:i], file[i:]
	}
	return file, ""
}

// getRecording serves GET /Recordings/{file}. The project's media policy applies to the media and
// its outline. The document needs valid credentials. If the path has no extension, callers get the
// document if they have valid credentials and accept JSON. Otherwise, they get the media.
func (a *API) getRecording(w http.ResponseWriter, r *http.Request) error {
	if sid, ok := strings.CutSuffix(r.PathValue("file"), peaksEnd); ok {
		return a.guessed(r, func() error { return a.servePeaks(w, r, sid) })
	}

	switch sid, ext := parseFile(r.PathValue("file")); ext {
	case ".wav":
		return a.serveGuessed(w, r, sid, recordings.WAV)
	case ".json":
		return a.documented(a.showRecording)(w, r)
	case ".mp3":
		return a.serveGuessed(w, r, sid, recordings.MP3)
	case "":
		w.Header().Set("Vary", "Accept, Authorization")
		if !wantsJSON(r) {
			return a.serveGuessed(w, r, sid, recordings.WAV)
		}
		if err := a.documented(a.showRecording)(w, r); !unauthenticated(err) {
			return err
		}
		return a.serveGuessed(w, r, sid, recordings.WAV)
	}
	return problem.NoSuch("recording")
}

// serveGuessed is like serveMedia, for callers that may be guessing Sids.
func (a *API) serveGuessed(w http.ResponseWriter, r *http.Request, sid string, f recordings.Format) error {
	return a.guessed(r, func() error { return a.serveMedia(w, r, sid, f) })
}

// guessed calls serve for a request that needs only the Sid. After too many requests for unknown
// Sids from a network, guessed refuses all requests from this network, even for existing recordings.
// Otherwise, guessers would learn which Sids exist.
func (a *API) guessed(r *http.Request, serve func() error) error {
	found, err := a.miss(r)
	if err != nil {
		return err
	}
	err = serve()
	if !errors.Is(err, problem.NotFound) && !errors.Is(err, problem.RateLimited) {
		found()
	}
	return err
}

// wantsJSON reports whether the Accept header names JSON explicitly.
func wantsJSON(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(accept, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			if strings.EqualFold(strings.TrimSpace(kind), "application/json") {
				return true
			}
		}
	}
	return false
}

// showRecording serves the document at GET /Recordings/{file}, also below a call or a conference.
func (a *API) showRecording(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error {
	rec, err := a.findRecording(r, o)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.document(rec, urls))
}

// deleteRecording serves DELETE on the paths of showRecording.
func (a *API) deleteRecording(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	rec, err := a.findRecording(r, o)
	if err != nil {
		return err
	}
	if err := a.recordings.Delete(r.Context(), o.ProjectID, rec.Sid); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// findRecording returns the recording in the path. If the path contains a call or conference, the
// recording must belong to it.
func (a *API) findRecording(r *http.Request, o recordings.Owner) (recordings.Recording, error) {
	sid, ext := parseFile(r.PathValue("file"))
	if ext != "" && ext != ".json" {
		return recordings.Recording{}, problem.NoSuch("recording")
	}
	rec, err := a.recordings.Find(r.Context(), o, sid)
	if err != nil {
		return rec, err
	}
	call, conference := r.PathValue("CallSid"), r.PathValue("ConferenceSid")
	if call != "" && call != rec.CallSid || conference != "" && conference != rec.ConferenceSid {
		return recordings.Recording{}, problem.NoSuch("recording")
	}
	return rec, nil
}
