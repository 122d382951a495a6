package agent

// ReadReply is the parser without the turn around it.
var ReadReply = readReply
