package fabric

import (
	"context"
	"net/url"

	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/problem"
)

// maxLink bounds the address of a document.
const maxLink = 2000

// CheckLink reports what is wrong with the address of a document that people are led to:
// a browser must not run it. "" is none.
func CheckLink(param, link string) error {
	u, err := url.Parse(link)
	if link != "" && (err != nil || len(link) > maxLink || u.Scheme != "https" && u.Scheme != "http" ||
		u.Host == "" || u.User != nil) {
		return problem.BadParam(param, "%s must be an address with https or http", param)
	}
	return nil
}

func checkLink(param string, link *string) error {
	if link == nil {
		return nil
	}
	return CheckLink(param, *link)
}

// SetLogo returns a project a logo, which [logo.Make] has made; the zero value takes it away.
func (ps *Projects) SetLogo(ctx context.Context, id string, l logo.Logo) (Project, error) {
	id, ok := canonical(id)
	if !ok {
		return Project{}, problem.NoSuch("project")
	}
	defer ps.ForgetLogos()
	return ps.store.SetProjectLogo(ctx, id, l, ps.now())
}

// ForgetLogos is called once this node has changed whose a picture is.
func (ps *Projects) ForgetLogos() { ps.caches.logos.Clear() }

// FindLogo returns the picture of a name, a PNG, whosever it is, if it was somebody's within
// the last 300 ms.
func (ps *Projects) FindLogo(ctx context.Context, name string) ([]byte, error) {
	if _, ok := logo.Parse(name); !ok {
		return nil, problem.NoSuch("logo")
	}
	return ps.caches.logos.Load(name, func() ([]byte, error) { return ps.store.FindLogo(ctx, name) })
}
