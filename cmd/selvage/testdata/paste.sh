# paste.sh DOCUMENT runs the sh fences and writes the files of a document as they are, for the
# server of the calling script. Servers that the document starts on port 3000 use PORT.
set -eu
awk '
    /^```/ && inside { if (file) print "END_OF_FILE\nchmod +x " file; inside = file = ""; next }
    /^```[a-z]+ file=/ { split($0, at, "file="); file = at[2]; inside = 1; print "cat >" file " <<\"END_OF_FILE\""; next }
    /^```sh$/ { inside = "sh"; next }
    /^```/ { inside = "other"; next }
    inside == "sh" || file { print }
' "$(dirname "$GUIDE")/$1.md" | sed -e "s|http://localhost:8080|$BASE|g" -e "s|localhost:3000|localhost:$PORT|g" -e "s|listen(3000|listen($PORT|" -e "s|127.0.0.1:8080|127.0.0.1:${ONE_PORT-8080}|g" -e "s|127.0.0.1:8081|127.0.0.1:${TWO_PORT-8081}|g" -e '/^export PATH/d' >$1.sh
test -s $1.sh
[ -e node_modules ] || ln -sfn "$(dirname "$GUIDE")/../test/clients/node_modules" node_modules
set -x
. ./$1.sh
