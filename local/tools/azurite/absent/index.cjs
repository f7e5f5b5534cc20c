// Stands for libraries of Azurite's that its blob server in memory never calls: telemetry and SQL databases. They are nine
// tenths of what it would install.
module.exports = new Proxy(class {}, { get: (target, name) => (name in target ? target[name] : class {}) });
