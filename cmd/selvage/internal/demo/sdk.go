package demo

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"

	"github.com/selvage/selvage/internal/web"
)

// These constants describe the stock SDK of the demo's second tab. The script is included in the
// way that its vendor documents, in a fixed version. The digest is the hash of dist/index.umd.js in
// the npm package.
const (
	vendorHost      = "https://cdn.signalwire.com"
	vendorSDK       = vendorHost + "/@signalwire/js@3.30.0"
	vendorIntegrity = "sha384-BQ84YdymI6DOGF2z0oWxyhugGt0j4QSTO/eIbjGGeMIDCyyk+rVenUxaooLu98Gt"
)

// SDKPath is the path of the stock SDK, if the operator has configured a file.
const SDKPath = Path + "/signalwire.js"

// A stockSDK is the script that the demo's second tab loads.
type stockSDK struct {
	URL, Integrity string
	Host           string // origin from which the page may load scripts, in addition to its own; may be ""
	body           []byte // the script; empty if the vendor's host serves it
}

// readSDK reads the operator's file with the stock SDK. If file is "", it returns the vendor's
// script.
func readSDK(file string) (stockSDK, error) {
	if file == "" {
		return stockSDK{URL: vendorSDK, Integrity: vendorIntegrity, Host: vendorHost}, nil
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return stockSDK{}, fmt.Errorf("reading demo_sdk: %w", err)
	}
	sum := sha512.Sum384(body)
	return stockSDK{URL: SDKPath, Integrity: "sha384-" + base64.StdEncoding.EncodeToString(sum[:]), body: body}, nil
}

// SDKHandler serves GET /demo/signalwire.js. It calls notFound if there is no demo, or if no file
// is configured.
func (d *Demo) SDKHandler(notFound http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !d.IsShown() || d.stock.body == nil {
			notFound(w, r)
			return
		}
		web.ServeDocument(w, r, "text/javascript; charset=utf-8", web.ETag(d.stock.body), d.stock.body)
	}
}
