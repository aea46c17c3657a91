package laml

import (
	"errors"
	"net/http"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// parseFile splits the last element of a path into a Sid and an extension, dot
// included.
func parseFile(file string) (sid, ext string) {
	if i := strings.LastIndexByte(file, '.'); i >= 0 {
		return file[:i], file[i:]
	}
	return file, ""
}

// getRecording serves GET /Recordings/{file}: the media and its outline, public, or
// the document for valid credentials. Without an extension it is the media, unless valid
// credentials come with a wish for JSON.
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

// serveGuessed serves media as serveMedia does, to whoever may be guessing Sids.
func (a *API) serveGuessed(w http.ResponseWriter, r *http.Request, sid string, f recordings.Format) error {
	return a.guessed(r, func() error { return a.serveMedia(w, r, sid, f) })
}

// guessed serves what is public by its Sid: too many Sids of nothing from one network
// end the guessing, and right ones with it, or else it would learn which they are.
func (a *API) guessed(r *http.Request, serve func() error) error {
	found, err := a.miss(r)
	if err == nil {
		err = serve()
	}
	if !errors.Is(err, problem.NotFound) && !errors.Is(err, problem.RateLimited) {
		found()
	}
	return err
}

// wantsJSON tells whether Accept names JSON itself.
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

// showRecording serves the document: GET /Recordings/{file}, and the same below
// a call or a conference.
func (a *API) showRecording(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error {
	rec, err := a.findRecording(r, o)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.document(rec, urls))
}

// deleteRecording serves DELETE of the same paths.
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

// findRecording finds the recording of the path, which must belong to the call
// or conference that the path names.
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
