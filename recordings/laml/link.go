package laml

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// urlTTL is the query parameter for the lifetime of the links in a document, in seconds.
const urlTTL = "MediaUrlTtl"

// linkLasts is the lifetime of links if the request does not set one.
const linkLasts = time.Hour

// mediaURLs writes links to media into the documents of a project.
type mediaURLs struct {
	public string // prefix of each URL
	sign   func(rec recordings.Recording, f recordings.Format) (recordings.Link, error)
}

// mediaURLs returns the writer of links for a caller. The links are signed if the project requires
// that.
func (a *API) mediaURLs(r *http.Request, o recordings.Owner) (mediaURLs, error) {
	lasts, err := linkTime(r.URL.Query().Get(urlTTL))
	if err != nil {
		return mediaURLs{}, err
	}

	auth, err := a.recordings.MediaAuth(r.Context(), o.ProjectID)
	urls := mediaURLs{public: a.publicURL}
	if auth == recordings.Signed {
		urls.sign = func(rec recordings.Recording, f recordings.Format) (recordings.Link, error) {
			return a.recordings.Sign(rec, f, lasts, o.Maker)
		}
	}
	return urls, err
}

// linkTime parses the lifetime of links.
func linkTime(seconds string) (time.Duration, error) {
	if seconds == "" {
		return linkLasts, nil
	}
	n, err := strconv.Atoi(seconds)
	if most := int(recordings.LongestLink / time.Second); err != nil || n < 1 || n > most {
		return 0, problem.BadParam(urlTTL, "%s must be a number of seconds from 1 to %d", urlTTL, most)
	}
	return time.Duration(n) * time.Second, nil
}

// put writes the links to the forms of a recording's media that are available.
func (u mediaURLs) put(m *media, rec recordings.Recording) {
	if f := rec.BestFormat(); rec.Can(f) {
		m.MediaURL = u.url(m, rec, f, MediaPath(rec, f))
	}
	if rec.Can(recordings.MP3) {
		m.MP3URL = u.url(m, rec, recordings.MP3, MediaPath(rec, recordings.MP3))
	}
	if rec.HasMedia() && rec.Levels != nil {
		m.PeaksURL = u.url(m, rec, recordings.WAV, peaksPath(rec))
	}
}

// url returns a link to a path, signed for the format whose readers may fetch it. It returns nil
// if the link cannot be signed.
func (u mediaURLs) url(m *media, rec recordings.Recording, f recordings.Format, path string) *string {
	link := u.public + path
	if u.sign != nil {
		signed, err := u.sign(rec, f)
		if err != nil {
			return nil
		}
		link = WithLink(link, signed)
		m.URLExpires = optional(date(signed.Expires))
	}
	return &link
}

// MediaURLs returns a function that returns the media URL of a recording for a caller, or "" if the
// recording has none.
func (a *API) MediaURLs(r *http.Request, o recordings.Owner) (func(recordings.Recording) string, error) {
	urls, err := a.mediaURLs(r, o)
	return func(rec recordings.Recording) string {
		var m media
		if urls.put(&m, rec); m.MediaURL == nil {
			return ""
		}
		return *m.MediaURL
	}, err
}

// MediaPath returns the path of a recording's media in a format.
func MediaPath(rec recordings.Recording, f recordings.Format) string {
	path := prefix + "/Accounts/" + rec.ProjectID + "/Recordings/" + rec.Sid
	if f == recordings.Original {
		return path + ".wav?" + original + "=true"
	}
	return path + "." + string(f)
}

// original is the query parameter that selects the bytes as uploaded.
const original = "Original"

// WithLink adds the expiry and signature of a link to the URL of media.
func WithLink(mediaURL string, l recordings.Link) string {
	mark := "?"
	if strings.Contains(mediaURL, mark) {
		mark = "&"
	}
	return mediaURL + mark + "exp=" + strconv.FormatInt(l.Expires.Unix(), 10) +
		"&sig=" + url.QueryEscape(l.Signature)
}

// mayFetch returns the owner whose recordings the request may fetch: the whole project if its media
// is public or the request has a valid signed link to one of formats, and the caller otherwise.
func (a *API) mayFetch(
	r *http.Request, sid string, formats ...recordings.Format,
) (o recordings.Owner, auth recordings.MediaAuth, err error) {
	o.ProjectID = r.PathValue("AccountSid")
	if auth, err = a.recordings.MediaAuth(r.Context(), o.ProjectID); err != nil || auth == recordings.Public {
		return o, auth, err
	}

	query := r.URL.Query()
	exp, sig := query["exp"], query["sig"]
	linked := auth == recordings.Signed && len(sig) > 0
	if linked && len(sig) == 1 && len(exp) == 1 {
		for _, f := range formats {
			valid, err := a.recordings.Verify(o.ProjectID, sid, f, exp[0], sig[0])
			if valid || err != nil {
				return o, auth, err
			}
		}
	}

	caller, err := a.credentials(r)
	switch {
	case unauthenticated(err) && linked && r.Header.Get("Authorization") == "":
		// Not 401: a page that embeds the link must not make the browser ask for a password.
		err = problem.New(problem.Forbidden, "forbidden", "the link has expired or is invalid")
	case err == nil && caller.ProjectID != o.ProjectID:
		err = problem.NoSuch("recording")
	}
	return caller, auth, err
}
