package laml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// peaksEnd is what follows the Sid in the file name of a waveform outline.
const peaksEnd = ".peaks.json"

// peaksPath returns the path of a recording's outline.
func peaksPath(rec recordings.Recording) string {
	return prefix + "/Accounts/" + rec.ProjectID + "/Recordings/" + rec.Sid + peaksEnd
}

// Query parameters of an outline.
const (
	pixelsParam   = "pixels"
	perPixelParam = "samples_per_pixel"
	formatParam   = "format"
)

// servePeaks serves GET /Recordings/{Sid}.peaks.json, which is the waveform outline for players.
// Callers who may fetch the media in any format may also fetch the outline.
func (a *API) servePeaks(w http.ResponseWriter, r *http.Request, sid string) error {
	allowAnyOrigin(w.Header())
	owner, auth, err := a.mayFetch(r, sid, recordings.Formats...)
	if err != nil {
		return err
	}
	rec, body, err := a.draw(r, owner, sid)
	if err != nil {
		return err
	}

	h := w.Header()
	setCaching(h, auth)
	h.Set("Content-Type", "application/json")
	h.Set("ETag", fmt.Sprintf(`"%s-peaks-%08x"`, rec.SHA256, crc32.ChecksumIEEE(body)))
	r.Header.Del("Range") // a part of a JSON document is useless
	http.ServeContent(w, r, "", rec.Updated, bytes.NewReader(body))
	return nil
}

// draw waits for a turn, because even a short request may take much memory. Then, it reads and
// encodes an outline.
func (a *API) draw(r *http.Request, o recordings.Owner, sid string) (recordings.Recording, []byte, error) {
	done, err := a.turn(r.Context())
	if err != nil {
		return recordings.Recording{}, nil, err
	}
	defer done()

	rec, outline, err := a.recordings.Outline(r.Context(), o, sid)
	if err != nil {
		return recordings.Recording{}, nil, err
	}
	body, err := encodeOutline(r, rec, outline)
	if err != nil {
		return recordings.Recording{}, nil, err
	}
	return rec, body, nil
}

// encodeOutline encodes an outline in the requested format and resolution.
func encodeOutline(r *http.Request, rec recordings.Recording, o levels.Outline) ([]byte, error) {
	query := r.URL.Query()
	perPixel, err := pixelSize(query.Get(pixelsParam), query.Get(perPixelParam), rec, o)
	if err != nil {
		return nil, err
	}

	o = o.Scale(perPixel, rec.Frames)
	switch format := query.Get(formatParam); format {
	case "", "audiowaveform":
		return o.MarshalJSON() // json.Marshal would scan the result twice
	case "wavesurfer":
		return json.Marshal(struct {
			Peaks    [][]float64 `json:"peaks"`
			Duration float64     `json:"duration"`
		}{
			Peaks:    o.Waves(),
			Duration: rec.Duration().Seconds(),
		})
	}
	return nil, problem.BadParam(formatParam, "%s must be audiowaveform or wavesurfer", formatParam)
}

// pixelSize returns the number of frames per pixel. This is perPixel, or is computed from pixels,
// the maximum number of pixels. If neither is given, it is the resolution of the measured outline.
// perPixel must not be less than this resolution.
func pixelSize(pixels, perPixel string, rec recordings.Recording, o levels.Outline) (int, error) {
	switch {
	case pixels != "" && perPixel != "":
		return 0, problem.BadParam(pixelsParam, "set either %s or %s", pixelsParam, perPixelParam)
	case pixels != "":
		n, err := strconv.ParseInt(pixels, 10, 32)
		if err != nil || n < 1 {
			return 0, problem.BadParam(pixelsParam, "%s must be an integer from 1", pixelsParam)
		}
		return int(min((rec.Frames+n-1)/n, math.MaxInt32)), nil

	case perPixel != "":
		n, err := strconv.ParseInt(perPixel, 10, 32)
		if err != nil || int(n) < o.PerPixel {
			return 0, problem.BadParam(perPixelParam,
				"%s must be an integer from %d, the measured resolution", perPixelParam, o.PerPixel)
		}
		return int(n), nil
	}
	return o.PerPixel, nil
}
