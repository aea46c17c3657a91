// Package clients lets independent clients use a running server: a browser app
// with oidc-client-ts in Chromium, openid-client and the compatibility API's
// client in Node, the stock browser SDK in both, go-oidc, and the request shapes
// of native apps; Chromium, Firefox's store, curl and Go, which are to trust its
// certificate; and an ACME server.
package clients
