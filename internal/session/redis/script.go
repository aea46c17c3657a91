package redis

import (
	"crypto/sha1"
	"encoding/hex"
)

// A script is a Lua script on one key, which servers keep under its digest.
type script struct{ text, digest string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// The scripts get prefix(key) first where they read a value, so that they take
// what is of another kind for absent. No value is empty, with its prefix.
var (
	take = newScript(`
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then return '' end
redis.call('DEL', KEYS[1])
return value`)
	swap = newScript(`
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then return -1 end
if value ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1`)
	incr = newScript(`
local sum = redis.call('INCR', KEYS[1])
if sum == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return sum`)
)
