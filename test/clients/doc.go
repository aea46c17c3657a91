// Package clients tests a running server with independent clients:
//   - a browser app with oidc-client-ts in Chromium, openid-client and the compatibility API's
//     client in Node, the stock browser SDK in both, go-oidc, and the request shapes of native
//     apps;
//   - Chromium, Firefox's certificate store, curl and Go, which must trust its certificate;
//   - an ACME server.
package clients
