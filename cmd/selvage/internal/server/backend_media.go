package server

import (
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/mediastore"
	"github.com/selvage/selvage/internal/blob"
)

// openMedia opens the storage of media.
func (a *App) openMedia(c config.Config) error {
	media, err := mediastore.Open(c, a.Ring, "")
	if err != nil {
		return err
	}
	a.media, a.bucket = media.Store, media.Bucket
	a.opened = append(a.opened, a.media)
	return nil
}

// Media returns the media of recordings, or nil if they were not opened.
func (b *backends) Media() blob.Store { return b.media }

// linkLife is how long a link to the object store is valid. The store checks the validity only when
// a request begins.
const linkLife = 10 * time.Minute

// newRedirect returns a function that returns the URL at which the object store serves a file with
// the given headers. newRedirect returns nil unless the object store serves whole files.
func (a *App) newRedirect() func(key string, headers map[string]string) (string, error) {
	if a.bucket == nil || a.Config.S3.Serve != config.ServeRedirect {
		return nil
	}
	return func(key string, headers map[string]string) (string, error) {
		return a.bucket.Link(key, linkLife, headers)
	}
}
