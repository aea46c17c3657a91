// Package clients tests a running server with independent clients:
//   - a browser app with oidc-client-ts in Chromium, openid-client and the compatibility API's
//     client in Node, the stock browser SDK in both, go-oidc, and requests in the form that native
//     apps send;
//   - Chromium, Firefox's certificate store, curl and Go, which must trust the server's
//     certificate;
//   - an ACME server.
package clients
