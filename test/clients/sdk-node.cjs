// Runs a browser SDK in Node, with the parts of a page that it needs. Each line of stdin is an
// expression. For each, a line with the outcome of its promise is printed.
const dns = require('node:dns')
const { readFileSync } = require('node:fs')
const readline = require('node:readline')
const vm = require('node:vm')

const kept = new Map()
globalThis.window = globalThis
globalThis.WebSocket = require('ws')
globalThis.sessionStorage = {
  getItem: (key) => kept.get(key) ?? null,
  setItem: (key, value) => void kept.set(key, String(value)),
  removeItem: (key) => void kept.delete(key),
}

// Browsers know that *.localhost is this machine (RFC 6761, section 6.3).
const lookup = dns.lookup
dns.lookup = (host, ...rest) => lookup(/\.localhost$/.test(host) ? 'localhost' : host, ...rest)

globalThis.SignalWire = require(process.argv[2])
vm.runInThisContext(readFileSync('page/sdk.js', 'utf8'))

readline.createInterface({ input: process.stdin }).on('line', async (expression) => {
  const value = await vm.runInThisContext(expression)
  process.stdout.write(`${JSON.stringify(value)}\n`)
})
