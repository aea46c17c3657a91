package demo

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/templates"
)

// Handler serves GET /demo, the page of the demo app. It calls notFound if there is no demo.
func (d *Demo) Handler(notFound http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !d.IsShown() {
			notFound(w, r)
			return
		}
		found, err := d.readApp() // `selvage demo reset` may have replaced it
		if err != nil {
			notFound(w, r)
			return
		}
		if _, err := d.IDP.Clients.Find(r.Context(), found.ClientID); err != nil {
			notFound(w, r) // the demo's project was deleted
			return
		}
		d.writePage(w, r, found)
	}
}

// writePage writes the page of the demo app.
func (d *Demo) writePage(w http.ResponseWriter, r *http.Request, found app) {
	page := templates.Demo{
		SDK:            sdk.Find("selvage.js").URL,
		Server:         d.Where.Public,
		Issuer:         d.Where.Issuer(),
		FabricHost:     d.Where.Fabric,
		Client:         found.ClientID,
		Email:          found.Email,
		LoopbackMedia:  d.LoopbackMedia,
		StockSDK:       d.stock.URL,
		StockIntegrity: d.stock.Integrity,
		StockHost:      d.stock.Host,
	}

	auth := originOf(d.Where.Auth)
	_, domain, _ := strings.Cut(d.Where.Fabric, ".") // browser SDKs replace the first label
	o := templates.Options{
		Scripts: true,
		Media:   true,
		Frames:  []string{"'self'", auth},
		Connect: []string{
			auth,
			"https://fabric." + domain,
			"wss://" + d.Where.Fabric,
			"ws" + strings.TrimPrefix(d.Where.Public, "http"),
		},
		Framer: "'self'", // the app renews its login in an iframe
		View:   templates.View{Words: words.Choose(web.Language(r), r.Header.Get("Accept-Language"))},
	}
	if d.stock.Host != "" {
		o.ScriptHosts = []string{d.stock.Host}
	}
	_ = templates.Write(w, page, o) // the template was parsed at startup
}

// originOf returns the origin of base, one of the server's URLs.
func originOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base // base was parsed at startup
	}
	return u.Scheme + "://" + u.Host
}
